#!/usr/bin/env bash
# Train with dropout, kill, resume and translate on one GPU, in less than ten minutes; on a CPU smaller.
#
#   scripts/smoke_gpu.sh [FOLDER]      (default: a temporary folder, deleted at the end)
#
# Every precision with every launcher: are the losses after a kill those of a training that was not killed, how long
# do GPUs wait at the start of an epoch, how many processes are there, how many words per second? Needs no network.
# Says what it skipped; its status is 1 if anything failed that works on this device. PYTHON=... sets the Python.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python}
export PYTHONPATH="$here/..${PYTHONPATH:+:$PYTHONPATH}" OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
folder=${1:-}
if [ -z "$folder" ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
fi
mkdir -p "$folder"
mt() { "$python" -m mt_scaffold "$@"; }
watch() { "$python" "$here/smoke_training.py" "$@"; }

device=$(watch device)
echo "device: $device"
if [[ $device == GPU* ]]; then
  gpus=1 pairs=40000 symbols=8000 workers=4 tokens=4000
  precisions="fp16 bf16" launchers="fairseq torchrun"
  model="--encoder-layers 6 --decoder-layers 6 --encoder-embed-dim 512 --decoder-embed-dim 512"
  model+=" --encoder-ffn-embed-dim 2048 --decoder-ffn-embed-dim 2048"
else
  gpus=0 pairs=1500 symbols=500 workers=2 tokens=1000
  precisions="fp32 fp16 bf16" launchers="fairseq"
  model="--encoder-layers 2 --decoder-layers 2 --encoder-embed-dim 64 --decoder-embed-dim 64"
  model+=" --encoder-ffn-embed-dim 256 --decoder-ffn-embed-dim 256"
  echo "skipped: launcher torchrun, which starts a process for each GPU"
fi

echo "== data: $pairs generated pairs, $symbols symbols, words to be segmented in training and ids for comparison"
cat > "$folder/data.yaml" <<END
name: data
languages: {source: qaa, target: qab}
data: {synthetic: {pairs: $pairs, valid: 200, test: 200, seed: 1}}
codes: {symbols: $symbols}
systems: {bpe: {algorithm: bpe}}
baseline: bpe
train: {options: {}}
END
raw=$folder/raw
mt get-data --config "$folder/data.yaml" --output-dir "$raw"
mt learn-bpe --algorithm scaffold --symbols "$symbols" --input "$raw/train.qaa" "$raw/train.qab" --output "$folder/codes"
for kind in words ids; do
  command=binarise
  [ $kind = ids ] || command=binarise-words
  mt $command --train "$raw/train" --valid "$raw/valid" --test "$raw/test" --source-lang qaa --target-lang qab \
    --codes "$folder/codes" --output "$folder/$kind" --num-workers 2
done

options="--arch transformer --share-all-embeddings --dropout 0.1 --criterion label_smoothed_cross_entropy"
options+=" --label-smoothing 0.1 --optimizer adam --lr 0.0005 --lr-scheduler inverse_sqrt --warmup-updates 100"
options+=" --max-tokens $tokens --num-workers $workers --max-epoch 2 --save-interval-updates 10"
options+=" --keep-interval-updates 1 --log-interval 1 --log-format json $model"
# train FOLDER DATA LAUNCHER PRECISION [OPTIONS OF THE WATCH]: a training of two epochs in FOLDER
train() {
  local output=$1 data=$2 launcher=$3 precision=$4 flags=""
  shift 4
  [ "$precision" = fp32 ] || flags="--$precision"
  [ "$data" = ids ] || flags+=" --bpe-dropout 0.1"
  # shellcheck disable=SC2086  # the options are words
  watch run "$output" "$@" -- "$python" -m mt_scaffold train --data "$folder/$data" --output "$output" \
    --launcher "$launcher" --gpus $gpus --seed 1 -- $options $flags
}

status=0
for launcher in $launchers; do
  for precision in $precisions; do
    echo "== $precision, launcher $launcher"
    whole=$folder/$precision-$launcher/whole
    if ! train "$whole" words "$launcher" "$precision"; then
      if [ $gpus = 1 ]; then status=1; else echo "$precision: not available on the CPU"; fi
      continue
    fi
    cut=$folder/$precision-$launcher/cut
    if train "$cut" words "$launcher" "$precision" --kill-like "$whole" && train "$cut" words "$launcher" "$precision"
    then
      if ! watch compare "$whole" "$cut"; then
        echo "the same training again, without a kill: does this device compute the same twice?"
        train "$whole-again" words "$launcher" "$precision"
        if watch compare "$whole" "$whole-again"; then
          echo "FAILED: a resumed training differs from one that was not killed"
          status=1
        else
          echo "it does not, so the difference says nothing about resuming"
        fi
      fi
    else
      status=1
    fi
    watch describe "$whole"
  done
done

precision=${precisions%% *}
echo "== $precision, launcher fairseq, the standard task on ids without dropout, for comparison"
if train "$folder/standard" ids fairseq "$precision"; then watch describe "$folder/standard"; else status=1; fi

echo "== translate"
whole=$folder/$precision-fairseq/whole
mt average --checkpoints "$whole/checkpoints" --last 2 --output "$whole/averaged.pt"
begin=$SECONDS
mt translate --data "$folder/words" --subset test --model "$whole/averaged.pt" --output "$whole/translations" \
  --gpus $gpus -- --beam 4 --max-len-b 50
echo "translated $(wc -l < "$whole/translations/test.qab") of $(wc -l < "$raw/test.qaa") sentences in $((SECONDS - begin)) s"
echo "== $SECONDS s in all, status $status"
exit $status
