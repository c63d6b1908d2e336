"""What the reference of the configuration says of each key: a sentence, with the unit, and an example.

``KEY: meaning | example``; a key that means something else in one class is ``Class.key``.
"""

from __future__ import annotations

_TABLE = """
task: What is trained. | language_modeling
name: Name of the experiment, and of its folder. | multi30k
description: A sentence for people, shown in the report. | English to German, small models
languages: The language pair. | {source: en, target: de}
Languages.source: Code of the source language, the suffix of its files. | en
Languages.target: Code of the target language, the suffix of its files. | de
data: Where the text comes from. | {synthetic: {pairs: 12000}}
codes: How codes are learned; for a system: a codes file to use instead. | {symbols: 8000}
codes_source: A codes file for the source side, instead of learning. | given/codes.en
codes_target: A codes file for the target side, instead of learning. | given/codes.de
systems: The systems to compare, by name. | {bpe: {algorithm: bpe}, scaffold: {algorithm: scaffold}}
baseline: The system that others are tested against. | bpe
train: How models are trained; for a system: options in place of those. | {options: {arch: transformer, lr: 0.0005}}
tokenise: How raw text becomes words. | {lowercase: true}
clean: Which pairs are kept. | {max_tokens: 175}
binarise: How the data folder is made. | {}
prepare: How a large corpus is prepared. | {}
seeds: The random seed of each training of a system. | [1, 2, 3]
average: How many checkpoints become the final model. | {last: 5}
translate: How test sets are translated. | {options: {beam: 5}}
score: The metrics and the tests. | {metrics: [bleu, chrf]}
compare_with: Scores published elsewhere, shown next to ours. | []
paper: The experiment of the paper that this one repeats. | {text: WMT'14 En-De}
comparisons: When the trainings that are compared with each other end, by name. | {equal_tokens: {tokens: 10000000}}
evaluate: How language models are scored. | {bootstrap_samples: 1000}
samples: The texts that every model continues. | {prompts: ["Once upon a time"], length: 100}
synthetic: Text in an invented language. | {}
files: Parallel text in files. | {train: [{source: {path: a.en}, target: {path: a.de}}]}
archives: Parallel text in archives. | {train: [], tests: {}}
documents: Documents in files; of synthetic text: how many documents to train on. | {train: ['shards/*.jsonl.gz']}
SyntheticDocuments.documents: Documents to train on. | 1000
DocumentData.documents: Documents in files. | {train: ['shards/*.jsonl.gz']}
pairs: Sentence pairs. | 12000
ArchiveTest.pairs: The members of archives that are the test set. | [{archive: {url: https://example.org/a.tgz}}]
valid: The validation set; of synthetic text: its sentence pairs or documents. | 500
test: Sentence pairs or documents of the test set. | 1000
tests: The test sets, by name. | {test_2016: []}
seed: The seed that fixes every random choice. | 1
sample: Keep only so many pairs or documents at the start of the training text, for a rehearsal. | 1000
valid_cut: Whether pairs are counted for valid_every before or after cleaning. | before_cleaning
valid_every: Take every Nth pair out of the training text as the validation set. | 100
held_out_every: Take two of every N documents out of the training text, for validation and test. | 100
source: The source side: a file, or its name in the archive. | train.en
target: The target side: a file, or its name in the archive. | train.de
url: The address to download from. | https://example.org/train.en.gz
path: A local file, relative to the folder that the experiment is started in. | corpus/train.en
sha256: The SHA-256 digest that the file must have, as 64 hexadecimal digits. | 9f86d081…
md5: The MD5 digest that the file must have, as 32 hexadecimal digits. | d41d8cd9…
archive: The archive that holds both files. | {url: https://example.org/a.tgz, sha256: unknown}
markup: The markup around the sentences of both files; without it, a line is a sentence. | ted
sacrebleu: A test set that sacreBLEU knows, by its name there. | wmt14/full
normalise_punctuation: Normalise punctuation as Moses does. | true
remove_nonprinting: Remove characters that are not printed. | true
check: Refuse text that looks tokenised or segmented already. | false
none: Take the text as it is: words between spaces. | true
Tokenise.source: What is different for the source side. | none
Tokenise.target: What is different for the target side. | none
tasks: The tasks of lm-evaluation-harness that every model is asked. | {names: [piqa], num_fewshot: [0, 5]}
names: The tasks, by the harness's names or those of the user's own. | [hellaswag, piqa]
num_fewshot: How many solved questions stand before each question. | [0, 5]
last_checkpoints: How many of the last checkpoints are asked; 0 asks the averaged model instead. | 5
include_path: Folders with the user's own tasks. | [my_tasks]
storycloze: The folder with the CSV files of StoryCloze. | corpora/storycloze
limit: Ask only so many questions of each task, for a rehearsal. | 100
batch_size: Questions that a model reads at once. | 16
download: Download data that is not in the local cache. | true
paper_setting: The setting in the paper's tables that a comparison repeats. | {equal_tokens: 468M}
aggressive_dash_splitting: Split words at dashes, as "-a" of Moses' tokeniser. | true
straight_apostrophes: Turn U+2019 into an apostrophe first. | false
lowercase: Lowercase the words. | false
min_tokens: The fewest words of a sentence that is kept. | 1
max_tokens: The most words of a sentence that is kept. | 250
max_ratio: The most words of one side for each word of the other. | 1.5
chunks: Jobs that tokenise the training text of each language. | 8
keep_text: Keep the raw training text and its subwords after their last use. | false
shards: Jobs that count the words of the training documents. | 8
max_memory: Memory that each counting job may take: bytes, or a number with K, M, G or T. | 8G
padding_factor: Pad the number of symbols to a multiple of this. | 8
algorithm: The method that learns the codes. | scaffold
symbols: Normal merged tokens to learn, or merges, for the method that is learned. | 8000
min_frequency: Merge no pair of symbols that occurs less often in the training text. | 2
total_symbols: Count the base symbols as part of the number of symbols. | true
symbols_source: The number of symbols of the source side. | 8000
symbols_target: The number of symbols of the target side. | 16000
joint: Learn one set of codes from both sides. | false
vocabulary_threshold: Split subwords that occur less often on their side of the training text. | 50
glossaries: Words, or regular expressions, that are never split. | ['<num>']
inference: How codes are applied. | greedy
dropout: The probability, from 0 to 1, to skip a merge in training, on both sides. | 0.1
dropout_source: The same for the source side alone. | 0.1
dropout_target: The same for the target side alone. | 0.1
uniform_sampling: The probability, from 0 to 1, to draw a word's segmentation in training uniformly. | 0.1
uniform_sampling_source: The same for the source side alone. | 0.1
uniform_sampling_target: The same for the target side alone. | 0.1
sampling_alpha: With Unigram, the exponent of probabilities in subword sampling. | 0.2
options: Options of the program behind this section, by their names without dashes in front. | {beam: 5}
batch: Which of the batches to train with. | large
batches: Batch sizes to choose from, by name: options that are added. | {large: {options: {max-tokens: 4096}}}
gpus: The number of GPUs that the batch is meant for. | 8
thin: Take the optimiser's state out of checkpoints that are averaged. | true
stop: What ends a training, unless an option does. | {epochs: 20}
patience: End once so many validations in a row brought nothing better. | 5
patience_on: What must get better for patience. | bleu
updates: End after so many updates. | 100000
epochs: End after so many epochs. | 20
last: How many of the last checkpoints are averaged; 0 takes the best one. | 5
engine: The program that translates. | ctranslate2
quantization: The type of the parameters in CTranslate2. | int8
bootstrap_samples: Resamples of the test set in each test. | 1000
metrics: What is computed for every translation. | [bleu, chrf]
comet: The checkpoint of a COMET model on this machine. | models/wmt22/model.ckpt
test_set: The test set of this experiment that a figure from elsewhere belongs to. | wmt14
by: Who published the score. | Vaswani et al. (2017)
system: What the publication calls its system. | Transformer (base)
beside: Our system that it is shown next to. | bpe
metric: The metric of the score. | tokenised_bleu
Published.score: The published score, in the metric's unit. | 27.3
prompts: What every model continues, a line each. | ["Once upon a time"]
length: The most tokens that a model writes after a prompt. | 100
temperature: What the logits are divided by before drawing; 0 takes the likeliest token. | 0.8
top_k: Draw only from so many of the likeliest tokens, 0: from all. | 50
top_p: Draw only from the likeliest tokens that make up this probability, above 0 and up to 1. | 0.9
prune: Drop words with a lower count before learning. | 2
field: The key or column of the text in JSONL and Parquet. | text
format: What a document is; without it, what the names of the files say. | jsonl
lines_per_document: Join so many lines to one document. | 20
EqualAmount.tokens: Tokens of the training documents, each with its end. | 10000000
EqualAmount.text: Bytes of the training documents. | 50000000
text_of: The comparison whose baseline was trained on as much text. | equal_tokens
Stop.tokens: End after so many subwords of source and target, with one </s> per sentence. | 50000000
Stop.text: End after so many bytes of the words of source and target. | 200000000
subwords: Estimated subwords of the longer side of each pair, summed. | 130000000
Expected.text: Estimated bytes of both sides. | 1200000000
expected: An estimate of the training text, to check the averaging before anything runs. | {pairs: 1, subwords: 30}
validate_bleu: Compute BLEU of the validation set in training. | true
schedule: How the learning rate falls to its least value at the end of the training. | cosine
RepeatedText.text: The text in the paper's tables. | WMT'14 En-De
last_checkpoints: Score so many of the last checkpoints of a training, each by itself. | 5
pretokenise: What a word is. | gpt2
split_digits: Make every digit a separate word. | true
bytes: Symbols are bytes, which language models need. | true
stems: Stems of the invented language. | 740
clauses: The most clauses in one sentence. | 2
sentences: Sentences of a document. | 10
joined_dictionary: Use one dictionary for both sides. | true
nwordssrc: The most symbols of the source dictionary, -1: all. | 8000
nwordstgt: The most symbols of the target dictionary, -1: all. | 8000
thresholdsrc: Leave out symbols that are rarer in the source text. | 5
thresholdtgt: Leave out symbols that are rarer in the target text. | 5
alpha: How many times its even share of the window is too many merges for a language. | 2
draw: Which random tokens to trim; each number is another draw. | 2
below: Trim tokens that occur less often. | 100
global_merges: Choose so many merges on all languages together first. | 1000
refill: Learn more tokens in place of those that were trimmed. | true
threshold: The share of a token's occurrences, from 0 to 1, that removes it when merged at once. | 0.9
window: Of so many last merges, no language may have too many. | 100
"""


def _read() -> dict[str, tuple[str, str]]:
    entries = {}
    for line in _TABLE.strip().splitlines():
        key, _, rest = line.partition(": ")
        meaning, _, example = rest.rpartition(" | ")
        entries[key] = (meaning, example)
    return entries


KEYS = _read()


def said_of(kind: str, key: str) -> tuple[str, str]:
    """Return the sentence and the example for a key of a class; empty where there is none."""
    return KEYS.get(f"{kind}.{key}") or KEYS.get(key) or ("", "")
