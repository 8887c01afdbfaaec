#!/bin/bash
# Runs bench/clients.py with what it needs beside mlirt: bash bench/clients.sh OUT [WHEELS] [arguments ..]
# WHEELS is a folder of wheels that are installed without a network; - takes them from the package registry.
set -u
out=$1 wheels=${2:--}
shift $(($# > 1 ? 2 : 1))
cd "$(dirname "$0")/.." || exit
python=${PYTHON:-python3}
site=${TMPDIR:-/tmp}/mlirt-clients-site
mkdir -p "$out"
if [ "$wheels" = - ]; then
  needs=("polygraphy==0.53.6" "trt-engine-explorer==0.1.5" "pandas<3" pytz tzdata python-dateutil six)
  test -d "$site" || "$python" -m pip install -q --no-deps --no-compile --target "$site" "${needs[@]}" || exit
else
  "$python" -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target "$site" "$wheels"/*.whl || exit
fi
export PYTHONPATH=$PWD/src:$site${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1 POLYGRAPHY_COMMAND=$site/bin/polygraphy
exec "$python" bench/clients.py "$out" "$@"
