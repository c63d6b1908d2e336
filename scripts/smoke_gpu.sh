#!/usr/bin/env bash
# Train with dropout, kill, resume, translate and evaluate on one GPU, in about ten minutes; on a CPU with small models.
#
#   scripts/smoke_gpu.sh [FOLDER]      (default: a temporary folder, deleted at the end)
#
# Covers translation in every precision with every launcher, a language model, and training in two processes. Compares
# the losses after a kill with those of an uninterrupted training, and prints how long an epoch takes to start, the
# number of processes, and words per second. PyTorch uses its deterministic algorithms, which can be slower. Needs no
# network. Prints what it skips; its status is 1 if anything fails that works on this device. PYTHON=... chooses the
# interpreter.
set -euo pipefail
for option; do
  if [[ $option == -h || $option == --help ]]; then
    sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
    exit
  fi
done
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python}
folder=${1:-}
if [ -z "$folder" ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
fi
mkdir -p "$folder/deterministic"
# Every Python imports sitecustomize at startup; trainings turn on the deterministic algorithms. If operations have none
# (warn_only), the distance of a resumed training is compared with that between two that were not killed.
cat > "$folder/deterministic/sitecustomize.py" <<'END'
import sys

if any(name in " ".join(sys.orig_argv) for name in ("fairseq_cli", "torch.distributed.run", "multiprocessing.spawn")):
    import torch

    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False
END
export PYTHONPATH="$folder/deterministic:$here/..${PYTHONPATH:+:$PYTHONPATH}" OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
export CUBLAS_WORKSPACE_CONFIG=:4096:8
mt() { "$python" -m mt_scaffold "$@"; }
watch() { "$python" "$here/smoke_training.py" "$@"; }

device=$(watch device)
echo "device: $device"
if [[ $device == GPU* ]]; then
  gpus=1 pairs=40000 symbols=8000 workers=4 tokens=4000 size=512
  precisions="fp16 bf16" launchers="fairseq torchrun"
  model="--encoder-layers 6 --decoder-layers 6 --encoder-embed-dim 512 --decoder-embed-dim 512"
  model+=" --encoder-ffn-embed-dim 2048 --decoder-ffn-embed-dim 2048"
  echo "two processes: on the CPU, because NCCL does not let two share a GPU"
else
  gpus=0 pairs=1500 symbols=500 workers=2 tokens=1000 size=64
  precisions="fp32 fp16 bf16" launchers="fairseq"
  model="--encoder-layers 2 --decoder-layers 2 --encoder-embed-dim 64 --decoder-embed-dim 64"
  model+=" --encoder-ffn-embed-dim 256 --decoder-ffn-embed-dim 256"
  echo "skipped: launcher torchrun, which starts a process for each GPU"
fi

echo "== data: $pairs generated pairs, $symbols symbols; words to segment in training, and ids for comparison"
cat > "$folder/data.yaml" <<END
name: data
languages: {source: en, target: de}
data: {synthetic: {pairs: $pairs, valid: 200, test: 200, seed: 1}}
codes: {symbols: $symbols}
systems: {bpe: {algorithm: bpe}}
baseline: bpe
train: {options: {}}
END
raw=$folder/raw
mt get-data --config "$folder/data.yaml" --output-dir "$raw"
mt learn-bpe --algorithm scaffold --symbols "$symbols" --input "$raw/train.en" "$raw/train.de" --output "$folder/codes"
for kind in words ids; do
  command=binarise
  [ $kind = ids ] || command=binarise-words
  mt $command --train "$raw/train" --valid "$raw/valid" --test "$raw/test" --source-lang en --target-lang de \
    --codes "$folder/codes" --output "$folder/$kind" --num-workers 2
done
mt learn-bpe --algorithm scaffold --symbols "$symbols" --pretokenise gpt2 --input "$raw/train.de" \
  --output "$folder/byte-codes"
mt binarise-documents --codes "$folder/byte-codes" --train "$raw/train.de" --valid "$raw/valid.de" \
  --test "$raw/test.de" --output "$folder/documents" --num-workers 2

common="--optimizer adam --lr 0.0005 --lr-scheduler inverse_sqrt --warmup-updates 100 --num-workers $workers"
common+=" --save-interval-updates 10 --keep-interval-updates 1 --log-interval 1 --log-format json"
translation="--arch transformer --share-all-embeddings --dropout 0.1 --criterion label_smoothed_cross_entropy"
translation+=" --label-smoothing 0.1 --max-tokens $tokens $common"
language="--arch llama --decoder-layers 2 --decoder-embed-dim $size --decoder-ffn-embed-dim $((4 * size))"
language+=" --decoder-attention-heads 4 --dropout 0.1 --criterion cross_entropy --tokens-per-sample 128 --batch-size 8"
language+=" --max-epoch 2 $common"
# Small enough for the CPU of any machine with a GPU.
small="--encoder-layers 1 --decoder-layers 1 --encoder-embed-dim 32 --decoder-embed-dim 32 --encoder-ffn-embed-dim 64"
small+=" --decoder-ffn-embed-dim 64 --max-update 40 --bpe-dropout 0.1"

# train FOLDER KIND LAUNCHER PRECISION [OPTIONS OF watch run]: train in FOLDER. KIND: words, ids (translation, two
# epochs), documents (a language model) or pair (translation in two processes).
train() {
  local output=$1 kind=$2 launcher=$3 precision=$4 flags="" options
  shift 4
  [ "$precision" = fp32 ] || flags="--$precision"
  if [ "$kind" = pair ]; then
    # shellcheck disable=SC2086  # the options are words
    watch run "$output" "$@" -- "$python" "$here/smoke_training.py" pair "$folder/words" "$output" -- $translation $small
    return
  fi
  case $kind in
    words) options="$translation $model --max-epoch 2 --bpe-dropout 0.1" ;;
    ids) options="$translation $model --max-epoch 2" ;;
    documents) options=$language ;;
  esac
  # shellcheck disable=SC2086
  watch run "$output" "$@" -- "$python" -m mt_scaffold train --data "$folder/$kind" --output "$output" \
    --launcher "$launcher" --gpus $gpus --seed 1 -- $options $flags
}

status=0
# kill_and_resume FOLDER KIND LAUNCHER PRECISION: train, train again with a kill, compare. A training that cannot start
# is a failure, unless its precision may be missing on a CPU.
kill_and_resume() {
  local whole=$1/whole cut=$1/cut kind=$2 launcher=$3 precision=$4
  if ! train "$whole" "$kind" "$launcher" "$precision"; then
    if [ $gpus = 0 ] && [ "$precision" != fp32 ]; then echo "$precision: not available on the CPU"; else status=1; fi
    return 0
  fi
  if ! train "$cut" "$kind" "$launcher" "$precision" --kill-like "$whole" ||
    ! train "$cut" "$kind" "$launcher" "$precision"
  then
    status=1
  elif ! watch compare "$whole" "$cut"; then
    echo "the same training again, without a kill: does this device compute the same result twice?"
    if ! train "$whole-again" "$kind" "$launcher" "$precision"; then
      status=1
    elif watch compare "$whole" "$whole-again"; then
      echo "FAILED: a resumed training differs from one that was not killed"
      status=1
    elif watch judge "$whole" "$whole-again" "$cut"; then
      echo "it does not, and the resumed training differs no more than an undisturbed one"
    else
      echo "FAILED: a resumed training differs more than two that were not killed"
      status=1
    fi
  fi
  watch describe "$whole"
}

for launcher in $launchers; do
  for precision in $precisions; do
    echo "== translation, $precision, launcher $launcher"
    kill_and_resume "$folder/$precision-$launcher" words "$launcher" "$precision"
  done
done

precision=${precisions%% *}
echo "== $precision, launcher fairseq, the standard task on ids without dropout, for comparison"
if train "$folder/standard" ids fairseq "$precision"; then watch describe "$folder/standard"; else status=1; fi

echo "== translation, fp32, two processes on the CPU"
kill_and_resume "$folder/pair" pair "" fp32

echo "== language model, $precision, launcher fairseq"
kill_and_resume "$folder/language-model" documents fairseq "$precision"

echo "== translate"
whole=$folder/$precision-fairseq/whole
mt average --checkpoints "$whole/checkpoints" --last 2 --output "$whole/averaged.pt"
begin=$SECONDS
mt translate --data "$folder/words" --subset test --model "$whole/averaged.pt" --output "$whole/translations" \
  --gpus $gpus -- --beam 4 --max-len-b 50
echo "translated $(wc -l < "$whole/translations/test.de") of $(wc -l < "$raw/test.en") sentences in $((SECONDS - begin)) s"

echo "== evaluate"
whole=$folder/language-model/whole
mt average --checkpoints "$whole/checkpoints" --last 1 --output "$whole/averaged.pt"
begin=$SECONDS
mt evaluate --checkpoint "$whole/averaged.pt" --data "$folder/documents" --gpus $gpus --output "$whole/scores.json"
echo "evaluated in $((SECONDS - begin)) s"
echo "== $SECONDS s in all, status $status"
exit $status
