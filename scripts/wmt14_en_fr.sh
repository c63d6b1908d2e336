#!/usr/bin/env bash
# The paper's translation experiment on WMT'14 English–French, from scratch to the table: BPE and Scaffold-BPE, with and
# without BPE-dropout, in the setup of Ott et al. 2018. docs/paper.md has choices, hours and disk.
#
#   scripts/wmt14_en_fr.sh [OPTION ...]       options of mt-scaffold run
#
#   PROFILE=slurm scripts/wmt14_en_fr.sh      on a cluster (default: local, one machine with 8 GPUs)
#   PROFILE=default scripts/wmt14_en_fr.sh    on this machine, with what it has; docs/paper.md has a rehearsal on a CPU
#   scripts/wmt14_en_fr.sh --sample 20000 --batch small --output experiments/rehearsal \
#       --set average.last=2 --set train.batches.small.options.max-update=400      a rehearsal
#
# Stop it at any time; the same command resumes it.
set -euo pipefail
for option; do
    if [[ $option == -h || $option == --help ]]; then
        sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
        exit
    fi
done
cd "$(dirname "$0")/.."
config=configs/wmt14_en_fr.yaml
# All nodes of a cluster must see this folder.
export MT_SCAFFOLD_CACHE=${MT_SCAFFOLD_CACHE:-$PWD/data-cache}

# 1. The environment with mt-scaffold, PyTorch and fairseq, unless it exists.
make --silent venv
export PATH="$PWD/.venv/bin:$PATH"

# 2. The text, checked against its digests; only this step needs the network.
mt-scaffold get-data --config "$config" --fetch-only

# 3. Words, codes, data, trainings, translations and scores. It ends by printing the table, which is also in
#    experiments/wmt14_en_fr/comparison.txt.
mt-scaffold run "$config" --profile "${PROFILE:-local}" "$@"
