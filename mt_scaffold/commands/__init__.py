"""The commands of segmentation that do more than call one function, and the examples of all commands.

``cli.FUNCTIONS`` names the function of each command that is no module here.
"""

from __future__ import annotations

import re

_EXAMPLES = """\
mt-scaffold apply-bpe --codes codes < corpus.tok > corpus.bpe
mt-scaffold apply-bpe --codes codes --vocabulary vocab.de --vocabulary-threshold 50 < train.de > train.bpe.de
mt-scaffold compare-vocab bpe.codes scaffold.codes --input corpus.tok
mt-scaffold compare-vocab --sizes 8000 16000 32000 --input corpus.tok
mt-scaffold completion bash > ~/.local/share/bash-completion/completions/mt-scaffold
mt-scaffold completion zsh > "${fpath[1]}/_mt-scaffold"
mt-scaffold completion fish > ~/.config/fish/completions/mt-scaffold.fish
mt-scaffold count-words --input 'shards/*.jsonl.zst' --max-memory 8G --output words.counts
mt-scaffold count-words --merge shard-1.counts shard-2.counts --output words.counts
mt-scaffold decode --codes codes --input train.bin --output train.txt
server | mt-scaffold decode --codes codes --stream
mt-scaffold encode --codes codes --input 'shards/*.jsonl.zst' --append '<|endoftext|>' --special '<|endoftext|>' \\
    --output train.bin
mt-scaffold explain --codes codes Arizona zona
mt-scaffold export-tokenizers --codes codes --output tokenizer.json --check corpus.tok
mt-scaffold extend cl100k.codes --symbols 2000 --input train.de --output longer.codes --map map.json
mt-scaffold get-vocab < train.bpe.de > vocab.de
mt-scaffold import tokenizer.json --output model.codes --check corpus.txt
mt-scaffold import cl100k_base.tiktoken --output cl100k.codes
mt-scaffold import my.tiktoken --pretokenise gpt2 --special '<|endoftext|>=50256' --output my.codes
mt-scaffold join < corpus.bpe > corpus.tok
mt-scaffold join --codes codes --input text.subwords --output text
mt-scaffold learn-bpe --symbols 32000 < corpus.tok > codes
mt-scaffold learn-bpe --algorithm bpe --symbols 32000 --input train.en train.de --output codes
mt-scaffold learn-joint-bpe-and-vocab --input train.en train.de --symbols 32000 --output codes \\
    --write-vocabulary vocab.en vocab.de
mt-scaffold stats --codes bpe.codes scaffold.codes --input corpus.tok
mt-scaffold stats --codes bpe.codes cl100k.codes --languages corpus.de corpus.en
mt-scaffold trim bpe.codes --below 100 --input train.de --output trimmed.codes
mt-scaffold trim bpe.codes --below 20 --refill same --input train.de train.en --output refilled.codes
mt-scaffold trim bpe.codes --tokens unwanted.txt --output marked.codes
mt-scaffold trim cl100k.codes --below 10 --input train.de --output smaller.codes --map map.json
mt-scaffold apply-unigram --codes unigram.model --input train.en --output train.pieces.en
mt-scaffold average --checkpoints model/checkpoints --last 5 --output averaged.pt
mt-scaffold binarise --train train --valid valid --test test --source-lang en --target-lang de --codes codes \\
    --output binarised
mt-scaffold binarise-documents --codes codes --train train.jsonl --valid valid.jsonl --test test.jsonl \\
    --output binarised
mt-scaffold binarise-words --train train --valid valid --source-lang en --target-lang de --codes codes --output data
mt-scaffold check configs/demo.yaml
mt-scaffold check mine.yaml --set train.options.encoder-layers=12
mt-scaffold clean --source train.en --target train.de --output-source clean.en --output-target clean.de
mt-scaffold compare bpe.json scaffold.json --baseline bpe --output comparison
mt-scaffold compare bpe=model_1/scores.json scaffold=model_2/scores.json --baseline bpe
mt-scaffold compare bpe=model_1/tasks.json scaffold=model_2/tasks.json --baseline bpe
mt-scaffold join < translated.bpe | mt-scaffold detokenise --language de > translated.de
mt-scaffold dictionary --train train --source-lang en --target-lang de --codes codes --output dictionaries
mt-scaffold evaluate --checkpoint averaged.pt --data binarised --output scores.json
mt-scaffold evaluate --checkpoint averaged.pt --data binarised --counts words.counts --losses losses.json -o scores.json
mt-scaffold experiment average --config experiments/demo/config.yaml --system bpe --seed 1
mt-scaffold export transformers --experiment experiments/lm_demo --system scaffold --output language_model
mt-scaffold export transformers --model averaged.pt --data binarised --output language_model
mt-scaffold get-data --config configs/multi30k_en_de.yaml --output-dir raw
mt-scaffold get-data --config configs/multi30k_en_de.yaml --fetch-only --cache data-cache
mt-scaffold init corpus/train.en corpus/train.de
mt-scaffold init train.en train.de --valid dev.en dev.de --test test.en test.de --output ours.yaml
mt-scaffold init corpus/all.en corpus/all.de --hold-out 2000
mt-scaffold init --documents 'shards/*.jsonl.zst' --output lm.yaml
mt-scaffold keys | grep average
mt-scaffold keys --documents
mt-scaffold learn-unigram --symbols 8000 --input train.en train.de --output unigram.model
mt-scaffold lm-eval --checkpoints model/checkpoints --last 5 --data binarised --tasks paper --num-fewshot 0 5 \\
    --output tasks.json
mt-scaffold plan experiments/multi30k_en_de --difference 0.5
mt-scaffold plan experiments/multi30k_en_de --metric reference_bits_per_byte --difference 0.005
mt-scaffold report experiments/demo --examples 10
mt-scaffold run configs/demo.yaml
mt-scaffold run mine.yaml --cores 8 --set train.options.lr=0.001 --dry-run
mt-scaffold run configs/wmt14_en_de.yaml --profile slurm --only bpe scaffold
mt-scaffold run configs/wmt14_en_de.yaml --commands --only bpe
mt-scaffold score --hypothesis translations/test.de --reference raw/test.de --output scores.json
mt-scaffold score --hypothesis test.de --reference raw/test.de --metrics bleu chrf ter --output scores.json
snakemake -s "$(mt-scaffold snakefile)" --configfile configs/multi30k_en_de.yaml --cores 2
mt-scaffold strip-optimizer --checkpoints model/checkpoints
mt-scaffold tokenise --language de < train.raw.de > train.de
mt-scaffold train --data binarised --output model -- --arch transformer --max-epoch 10
mt-scaffold train --data binarised --output model --config configs/demo.yaml --seed 2
mt-scaffold translate --data binarised --subset test --model averaged.pt --output translations -- --beam 4
mt-scaffold translate-text experiments/demo/scaffold < text > translation
mt-scaffold translate-text experiments/demo/scaffold --seed 2 --input text.gz --output translation
fairseq-generate binarised --user-dir "$(mt-scaffold user-dir)" --path averaged.pt
"""


def examples_of(command: str) -> str:
    """Return the examples that ``--help`` shows: the calls whose last command is this one."""
    last_call = re.compile(rf"mt-scaffold {command}(?![\w-])(?!.*mt-scaffold )", re.DOTALL)
    return "\n".join(call for call in re.split(r"(?<!\\)\n", _EXAMPLES) if last_call.search(call))
