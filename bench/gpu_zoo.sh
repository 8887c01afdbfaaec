#!/bin/bash
# Runs bench/gpu_zoo.py on a fresh machine with a GPU and PyTorch: bash bench/gpu_zoo.sh OUT [WHEELS] [arguments ..]
# WHEELS is a folder of wheels (xdsl, its needs, numpy<2.5) that are installed beside what the machine has; - for none.
set -u
out=$1 wheels=${2:--}
shift $(($# > 1 ? 2 : 1))
cd "$(dirname "$0")/.." || exit
if [ "$wheels" != - ]; then
  python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target "${TMPDIR:-/tmp}"/site "$wheels"/*.whl || exit
  export PYTHONPATH="${TMPDIR:-/tmp}"/site
fi
export PYTHONPATH=src${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 TORCH_CPP_LOG_LEVEL=ERROR
set -o pipefail
python3 bench/gpu_zoo.py --out "$out" "$@" 2> >(grep -v -i warn > "$out/errors.txt") | tee "$out/table.txt"
