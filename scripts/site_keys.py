"""The configuration reference in words: an introduction to each section, and a sentence and an example for each key.

``[CLASS] introduction`` begins a section, the keys of one dataclass of the schema (or of several). Lines ``KEY:
sentence | example`` follow, continued on indented lines. An example is YAML that the schema accepts. Sentences name
units and limits; types and defaults come from the schema.
"""

from __future__ import annotations

import re

_TABLE = r"""
[Config] A translation experiment. Sections that are left out have the defaults of their keys.
name: Name of the experiment; results go to `experiments/NAME`. | multi30k_en_de
languages: The language pair. | {source: en, target: de}
data: Where the parallel text comes from. | {synthetic: {pairs: 12000}}
codes: How systems learn their codes, unless they say otherwise. | {symbols: 8000}
systems: The systems to compare; the names are yours and appear in every table. | {bpe: {algorithm: bpe}, scaffold:
    {algorithm: scaffold}}
baseline: The system that all others are tested against, unless they name another. | bpe
train: How every system is trained. | {options: {arch: transformer, lr: 0.0005}, stop: {epochs: 20}}
task: The kind of experiment. | translation
description: One line about the experiment, the heading of its tables. | English to German, small models
tokenise: How raw text is split into words; `none` if it already is. | {lowercase: true}
clean: Which sentence pairs are kept. | {max_tokens: 175}
binarise: Which subwords enter fairseq's dictionaries. | {thresholdsrc: 5}
prepare: How a large corpus is processed. | {chunks: 8}
seeds: Each system is trained once per seed; tests over trainings need three or more. | [1, 2, 3]
average: Which checkpoints become the final model. | {last: 5}
translate: How the test sets are translated. | {options: {beam: 5}}
score: Metrics and significance tests. | {metrics: [bleu, chrf]}
compare_with: Published scores to show next to ours. | [{test_set: test, by: Ott et al. 2018, system: BPE, beside:
    bpe, metric: bleu, score: 28.6}]
paper: The text of the Scaffold-BPE paper whose figures are shown next to ours. | {text: WMT'14 En-De, test_set:
    newstest2014, metric: bleu}

[Languages] Two language codes: the suffixes of the files, and the tokenisation rules of sacremoses.
source: The language that is translated from. | en
target: The language that is translated into. | de

[Data] Where the parallel text comes from: exactly one of `synthetic`, `files` and `archives`.
synthetic: Generated English and German sentences. | {pairs: 12000}
files: Plain or gzipped files, local or downloaded. | {train: [{source: {path: a.en}, target: {path: a.de}}], tests:
    {test: [{source: {path: b.en}, target: {path: b.de}}]}}
archives: Members of tar archives, and test sets that sacreBLEU downloads. | {train: [{archive: {url:
    https://example.org/a.tgz, sha256: unknown}, source: a.en, target: a.de}], tests: {wmt14: {sacrebleu:
    wmt14/full}}}
sample: Pairs to keep from the start of each training corpus, to rehearse an experiment. | 2000
valid_every: Every Nth training pair goes to the validation set instead; leave `valid` out. | 100
valid_cut: Whether `valid_every` counts pairs before or after cleaning. | before_cleaning

[SyntheticData] Generated parallel text. Few stems and short sentences make languages that a tiny model learns quickly.
pairs: Training pairs. | 12000
valid: Validation pairs. | 500
test: Test pairs. | 1000
seed: Random seed; the same seed generates the same bytes. | 1
stems: Word stems per language. | 440
clauses: Clauses per sentence, at most. | 2

[FileData] Parallel text in files. The files of a list are concatenated.
train: Training text, one entry per corpus. | [{source: {path: train.en}, target: {path: train.de}}]
tests: Test sets by name. | {test: [{source: {path: test.en}, target: {path: test.de}}]}
valid: The validation set; leave it out with `valid_every`. | [{source: {path: dev.en}, target: {path: dev.de}}]

[ParallelFiles] Two files with the same number of lines; line i of one translates line i of the other.
source: The file in the source language. | {path: train.en}
target: The file in the target language. | {path: train.de}

[DataFile] A local file or a download: `path` or `url`. `.gz` files are decompressed.
url: Address to download from; needs `sha256`. | https://example.org/train.en.gz
path: Local file, relative to the folder in which the command is started. | corpus/train.en
sha256: The file's SHA-256 digest; any other file is refused. |
    9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08

[ArchiveData] Parallel text in archives. The members of a list are concatenated.
train: Training text, one entry per pair of members. | [{archive: {url: https://example.org/a.tgz, sha256: unknown},
    source: a.en, target: a.de}]
tests: Test sets by name. | {wmt14: {sacrebleu: wmt14/full}}
valid: The validation set; leave it out with `valid_every`. | [{archive: {url: https://example.org/a.tgz, sha256:
    unknown}, source: dev.en, target: dev.de}]

[ArchivePair] Two members of a tar archive with the same number of lines. `.gz` members are decompressed.
archive: The archive that holds both members. | {url: https://example.org/a.tgz, sha256: unknown}
source: Name of the source-side member inside the archive. | de-en/train.en
target: Name of the target-side member inside the archive. | de-en/train.de
markup: Markup to strip from both members; without it every line is a sentence. | ted

[Archive] A tar archive, plain or compressed, with its `sha256` or `md5`.
url: Address to download from. | https://example.org/corpus.tgz
sha256: The archive's SHA-256 digest. `unknown` records that of the first download and checks it from then on. | unknown
md5: The archive's MD5 digest, if no SHA-256 digest is published. | d41d8cd98f00b204e9800998ecf8427e

[ArchiveTest] A test set: either `sacrebleu` or `pairs`.
sacrebleu: A test set that sacreBLEU downloads, by its name there. | wmt14/full
md5: MD5 digest of the download, instead of the one that sacreBLEU expects. | d41d8cd98f00b204e9800998ecf8427e
pairs: Members of archives, which are concatenated. | [{archive: {url: https://example.org/a.tgz, sha256: unknown},
    source: test.en, target: test.de}]
tokenise: Tokenisation of this test set, instead of the experiment's. | {straight_apostrophes: true}

[Learn] How codes are learned from the training text. A system can override each of these keys.
symbols: Size of the codes: merges (`bpe`, `parity`, and `trimmed` before trimming), normal merged tokens
    (`scaffold`), tokens that are kept (`picky`) or pieces longer than one character (`unigram`). | 8000
min_frequency: Learning stops when no pair of symbols occurs at least this many times. | 2
total_symbols: Count base symbols (characters) as part of `symbols`. | true

[System] A system: a method with its settings, and anything else in which the system differs from the others.
algorithm: Segmentation method to learn; leave it out with `codes`. | scaffold
symbols: As in the section `codes`, for this system. | 8000
symbols_source: `symbols` of the source side, with `joint: false`. | 8000
symbols_target: `symbols` of the target side, with `joint: false`. | 16000
min_frequency: As in the section `codes`, for this system. | 2
total_symbols: As in the section `codes`, for this system. | true
threshold: A token is removed when a merge takes away at least this share of its occurrences (above 0, at most 1). | 0.9
global_merges: The first N merges are learned by BPE on all languages together. | 1000
window: Length of the moving window, in merges; a language that was served too often within it is passed over. | 100
alpha: A language is passed over when it has more than this many times its even share of the window; 2 unless given. | 2
below: Tokens that occur fewer times in the training text are trimmed; below 1, a share of the frequency of the last
    merge. | 100
refill: After trimming, learn further merges until the vocabulary has its former size. | true
draw: Which random tokens the control trims; every number is another draw. | 2
joint: Learn one set of codes from both sides; otherwise one per side. | false
codes: A codes file to use instead of learning one. | given/codes
codes_source: A codes file for the source side, with `codes_target`. | given/codes.en
codes_target: A codes file for the target side, with `codes_source`. | given/codes.de
vocabulary_threshold: Subwords with fewer occurrences on their side of the training text, counted without dropout or
    sampling, are split further. | 50
glossaries: Words or regular expressions that are never split. | ['<url>', '<name\d+>']
inference: How codes segment a word; by default, merges are applied in the order in which they were learned. | greedy
dropout: BPE-dropout: probability of skipping a merge, drawn again in every epoch, on both sides of the training text.
    | 0.1
dropout_source: `dropout` on the source side only. | 0.1
dropout_target: `dropout` on the target side only. | 0.1
uniform_sampling: Probability that a word's segmentation is drawn uniformly from all that the vocabulary allows, in
    every epoch. | 0.1
uniform_sampling_source: `uniform_sampling` on the source side only. | 0.1
uniform_sampling_target: `uniform_sampling` on the target side only. | 0.1
sampling_alpha: Subword sampling with Unigram: the exponent of the probabilities, above 0; the lower, the more
    uniform. | 0.2
baseline: The system to test this one against, instead of the experiment's baseline. | bpe
train: Training options of this system, which replace those of the experiment. | {options: {dropout: 0.1}}

[SystemTrain] Training options of one system.
options: Options of fairseq-train that replace those of the section `train`. | {dropout: 0.1}

[Train, TrainLanguageModels] How systems are trained, and when a training ends.
options: Options of fairseq-train without their dashes; `true` sets a flag, `false` leaves it out. | {arch:
    transformer, lr: 0.0005, fp16: true}
batch: The entry of `batches` to use. | large
batches: Alternative batch sizes by name; the options of the chosen one are added to `options`. | {large: {options:
    {max-tokens: 4096}, gpus: 8}}
thin: Delete the optimiser's state from averaged checkpoints, which with Adam makes them a third as large; the last
    one keeps it. | true
stop: When a training ends, instead of `max-update` or `max-epoch` in the options. | {epochs: 20}
patience: Stop after this many validations in a row without an improvement. | 10
patience_on: What must improve, and chooses the best checkpoint: validation BLEU, or loss per byte of the text. | bleu
validate_bleu: Translate the validation set at each validation and log its BLEU. | true
expected: Estimated size of the training text, by which averaging is checked before the text is there. | {pairs:
    4500000, subwords: 130000000}
schedule: How the learning rate falls after the warm-up, to reach its minimum at the end of the training. | cosine

[Batch] The options of one batch size.
options: Options of fairseq-train. | {max-tokens: 4096, update-freq: 2}
gpus: GPUs that `update-freq` is meant for; on another number it is converted, so that the batch stays the same. | 8

[Stop] When a training ends: exactly one of these. Only what was trained on counts, on all GPUs together.
updates: Parameter updates. | 100000
epochs: Passes over the training text. | 20
tokens: Subwords of source and target, with one `</s>` per sentence. | 50000000
text: Bytes (UTF-8) of the words of source and target, with one line end per sentence. | 200000000

[Expected] The estimated size of the cleaned training text.
pairs: Sentence pairs. | 4500000
subwords: Subwords of the longer side of each pair, summed over all pairs. | 130000000
text: Bytes of both sides; needed with `stop: {text: N}`. | 1200000000

[Tokenise] How raw text is split into words, with sacremoses. `tokenise: none` takes text that is already tokenised.
normalise_punctuation: Normalise quotation marks, dashes and spaces, as Moses' `normalize-punctuation.perl` does. | true
remove_nonprinting: Remove control characters and the like. | true
aggressive_dash_splitting: Split words at hyphens (`-a` of Moses' tokeniser). | true
straight_apostrophes: First replace right single quotation marks (U+2019) by apostrophes. | true
lowercase: Lowercase all words. | true
check: Refuse text that looks tokenised or segmented already. | false
none: Leave the text as it is; its words are separated by spaces. | true
source: Settings of the source side that differ. | none
target: Settings of the target side that differ. | {lowercase: true}

[Clean] Which pairs of the training and validation text are kept, by their length before segmentation.
min_tokens: Words per sentence, at least. | 1
max_tokens: Words per sentence, at most. | 250
max_ratio: Words of the longer sentence per word of the shorter one, at most. | 1.5

[Limits] Which subwords enter fairseq's dictionaries; others become `<unk>`. Keys are those of fairseq-preprocess.
joined_dictionary: One dictionary for both sides; the limits of the source apply. | true
nwordssrc: Entries of the source dictionary, with fairseq's four special symbols; −1 for no limit. | 32768
nwordstgt: Entries of the target dictionary, with fairseq's four special symbols; −1 for no limit. | 32768
thresholdsrc: Occurrences that a subword needs in the source text. | 5
thresholdtgt: Occurrences that a subword needs in the target text. | 5
padding_factor: Pad each dictionary to a multiple of this many entries, which is faster on GPUs. | 8

[Prepare] How a large corpus is processed; the result is the same.
chunks: Jobs that tokenise the training text of each language in parallel. | 8
keep_text: Keep the raw training text and its subwords once no step needs them. | false

[Average] Which checkpoints become the final model.
last: Checkpoints to average, counted from the end; 0 takes the one with the best validation. | 5
by: Average the checkpoints of whole epochs, or those saved every `save-interval-updates` updates. | updates

[Translate] How test sets are translated.
engine: The program that translates. | ctranslate2
quantization: Type of the parameters in CTranslate2; by default float32. | int8
options: Options of fairseq-generate without their dashes; CTranslate2 refuses those that it cannot follow. | {beam:
    5, lenpen: 1.0}

[Score] Metrics and significance tests.
bootstrap_samples: Bootstrap resamples of the test set in each test. | 1000
metrics: Metrics to compute; [their definitions](../scores.md). | [bleu, chrf]
bleu_tokeniser: The tokeniser of `bleu` in sacreBLEU; by default the one that sacreBLEU chooses for the target language:
    zh, ja-mecab, ko-mecab, or 13a. | zh
comet: A COMET checkpoint on this machine, or several; COMET is computed if it is given. Trust it: loading it can run
    code. | [models/wmt22-comet-da, models/wmt22-cometkiwi-da]
last_checkpoints: Also score each of this many last checkpoints; 0 for none. | 5

[Published] A published score, to show next to ours.
test_set: The test set of this experiment to which the score belongs. | newstest2014
by: The publication. | Ott et al. 2018
system: Name of the system in the publication. | Transformer (big)
beside: The system of this experiment next to which the score is shown. | bpe
metric: The metric of the score. | tokenised_bleu
score: The published score, in points. | 29.3

[RepeatedText] Which of the paper's experiments this one repeats.
text: A text of the paper: `Pile`, `WMT'14 En-De` or `WMT'14 En-Fr`. | WMT'14 En-De
test_set: The test set to which the paper's BLEU belongs. | newstest2014
metric: The metric that the paper's BLEU is compared with. | tokenised_bleu_split

[LanguageModelConfig] An experiment with language models. Sections that are left out have the defaults of their keys.
task: The kind of experiment. | language_modeling
name: Name of the experiment; results go to `experiments/NAME`. | lm_mdn
data: Where the documents come from. | {synthetic: {documents: 1000}}
codes: How systems learn their codes, unless they say otherwise. | {symbols: 8000, total_symbols: true}
systems: The systems to compare; the names are yours and appear in every table. | {bpe: {algorithm: bpe}, scaffold:
    {algorithm: scaffold}}
baseline: The system that all others are tested against, unless they name another. | bpe
comparisons: The amounts of text after which models are compared; each comparison has its own trainings. |
    {equal_tokens: {tokens: 10000000}, equal_text: {text_of: equal_tokens}}
train: How every system is trained. | {options: {arch: llama, lr: 0.0006}, schedule: cosine}
description: One line about the experiment, the heading of its tables. | German technical prose
prepare: How the words of a large corpus are counted. | {shards: 8}
binarise: The size of the dictionaries. | {padding_factor: 8}
seeds: Each system is trained once per comparison and seed; tests over trainings need three or more. | [1, 2, 3]
average: Which checkpoints become the final model; by default the last one. | {last: 5}
evaluate: How bits per byte are measured and compared. | {bootstrap_samples: 1000}
samples: Prompts that every model continues, to read. | {prompts: [Once upon a time], length: 100}
tasks: Benchmark tasks that every model is asked. | {names: [piqa], num_fewshot: [0, 5]}

[DocumentData] Where the documents come from: either `synthetic` or `documents`.
synthetic: Generated documents, each in English or German. | {documents: 1000}
documents: Documents in files. | {train: ['shards/*.jsonl.gz']}
held_out_every: Of every N training documents, the last goes to the test set and the one before it to validation. | 100
sample: Documents to keep from the start of the training text, to rehearse an experiment. | 1000

[SyntheticDocuments] Generated documents, each in English or German.
documents: Training documents. | 1000
valid: Validation documents. | 50
test: Test documents. | 100
sentences: Sentences per document. | 10
seed: Random seed; the same seed generates the same bytes. | 1
stems: Word stems of the language. | 440
clauses: Clauses per sentence, at most. | 2

[DocumentFiles] Documents in files. Paths and globs are relative to the folder in which the command is started.
train: Training documents. | ['shards/*.jsonl.gz']
valid: Validation documents; leave them out with `held_out_every`. | [valid.jsonl]
tests: Test documents by the name of the test set; leave them out with `held_out_every`. | {news: [news.jsonl], code:
    [code.jsonl]}
format: What a document is: a line, a file, a JSON object or a row. By default, the file's name decides. | files
field: Key (JSONL) or column (Parquet) with the text; by default `text`. | content
lines_per_document: Lines to join to one document, if every line is a document otherwise. | 20

[LearnFromBytes] How codes are learned from the training documents. A system can override the first three keys.
symbols: Size of the codes: merges (`bpe`, and `trimmed` before trimming), normal merged tokens (`scaffold`) or tokens
    that are kept (`picky`). | 32000
min_frequency: Learning stops when no pair of symbols occurs at least this many times. | 2
total_symbols: Count the 256 bytes as part of `symbols`. | true
pretokenise: How text is split into words first: `gpt2`, `cl100k`, `o200k`, `spaces` or a regular expression. | gpt2
split_digits: Make every digit a separate word. | true
bytes: Symbols are bytes, so that no text is unknown; language models allow nothing else. | true

[LanguageModelSystem] A system: a method with its settings, and anything else in which the system differs from the
    others.
algorithm: Segmentation method to learn; leave it out with `codes`. | scaffold
symbols: As in the section `codes`, for this system. | 32000
min_frequency: As in the section `codes`, for this system. | 2
total_symbols: As in the section `codes`, for this system. | true
threshold: A token is removed when a merge takes away at least this share of its occurrences (above 0, at most 1). | 0.9
below: Tokens that occur fewer times in the training text are trimmed; below 1, a share of the frequency of the last
    merge. | 100
refill: After trimming, learn further merges until the vocabulary has its former size. | true
draw: Which random tokens the control trims; every number is another draw. | 2
codes: A codes file to use instead of learning one. | given/codes
baseline: The system to test this one against, instead of the experiment's baseline. | bpe
train: Training options of this system, which replace those of the experiment. | {options: {dropout: 0.1}}

[EqualAmount] When the trainings of a comparison end: exactly one of these.
tokens: Tokens of the training documents, one end of document each included. | 10000000
text: Bytes of the training documents. | 50000000
text_of: Another comparison; models read as many bytes as its baseline did, which is not trained again. | equal_tokens

[Counting] How the words of the training documents are counted.
shards: Jobs that share the files of the training documents. | 8
max_memory: Memory of each job, in bytes or with K, M, G or T; counts beyond it go to disk. By default there is no
    limit. | 8G
prune: Words that occur fewer times are dropped before learning, which can change the codes. | 2

[Padding] The size of the dictionaries.
padding_factor: Pad each dictionary to a multiple of this many entries, which is faster on GPUs. | 8

[Evaluate] How bits per byte are measured and compared.
options: Options of `mt-scaffold evaluate` without their dashes: `context-window` and `max-tokens`. | {context-window:
    128}
bootstrap_samples: Bootstrap resamples of the test documents in each test. | 1000

[Samples] Prompts that every model continues.
prompts: The prompts, one line each. | [Once upon a time]
length: Tokens to generate after each prompt, at most. | 100
temperature: Divisor of the logits; 0 always takes the most probable token. | 0.8
top_k: Draw from this many of the most probable tokens; 0 draws from all. | 50
top_p: Draw from the most probable tokens that together have this probability (above 0, at most 1). | 0.9
seed: Random seed; the same seed generates the same continuations. | 1

[HarnessTasks] Tasks of lm-evaluation-harness that every model is asked.
names: Tasks by the harness's names, those of your folders, or `paper` for all of the paper's. | [hellaswag, piqa]
num_fewshot: Solved questions that precede each question; with several numbers, the score is the mean over them. | [0,
    5]
last_checkpoints: Ask each of this many last checkpoints and take the mean; 0 asks the final model. | 5
include_path: Folders with your own tasks. | [my_tasks]
storycloze: Folder with the CSV files of StoryCloze, which its authors give out on request. | corpora/storycloze
limit: Questions per task, to rehearse an experiment; without it, all. | 100
batch_size: Questions that a model reads at once. | 16
download: Download data that is not in the local cache; otherwise it is an error. | true
paper_setting: For each comparison, the setting of the paper whose figures are shown next to ours. | {equal_tokens:
    468M}
"""


def _read() -> tuple[dict[str, str], dict[tuple[str, str], tuple[str, str]]]:
    introductions: dict[str, str] = {}
    entries: dict[tuple[str, str], tuple[str, str]] = {}
    classes: list[str] = []
    for line in filter(None, re.sub(r"\n {4}", " ", _TABLE).splitlines()):
        if line.startswith("["):
            names, _, introduction = line[1:].partition("] ")
            classes = names.split(", ")
            introductions |= dict.fromkeys(classes, introduction)
            continue
        key, _, rest = line.partition(": ")
        sentence, _, example = rest.partition(" | ")
        for kind in classes:
            assert (kind, key) not in entries, f"{kind}.{key} is listed twice"
            entries[kind, key] = (sentence, example)
    return introductions, entries


# The introduction of a section by its class, and the sentence and the example of a key by class and key.
INTRODUCTIONS, KEYS = _read()
