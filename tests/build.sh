#!/usr/bin/env bash
# Configures and builds build/<preset> with a line of progress: redrawn on a terminal, else one every ten seconds.
# A new folder compiles files in batches, which takes a third of the time; one that was configured before keeps its way, so
# that a developer's incremental build stays one (cmake --preset release, or TUNE_UNITY=OFF here).
#
#   tests/build.sh [--preset NAME] [-DOPTION=VALUE...] [TARGET...]
#
# Environment: TUNE_JOBS (2, compile jobs), TUNE_UNITY (ON)
set -uo pipefail
cd "$(dirname "$0")/.."

preset=release
if [ "${1:-}" = --preset ]; then
    preset=$2
    shift 2
fi
folder=build/$preset
mkdir -p $folder
log=$folder/build.log
options=(-DTUNE_COMPANIONS=ON) # what quickstart.sh may have left out is in again
[ -e $folder/CMakeCache.txt ] || options+=(-DTUNE_UNITY="${TUNE_UNITY:-ON}")
while [[ "${1:-}" == -D* ]]; do
    options+=("$1")
    shift
done
if ! cmake --preset "$preset" "${options[@]}" >$log 2>&1; then
    cat $log >&2
    exit 1
fi

targets=()
[ $# = 0 ] || targets=(--target "$@")
NINJA_STATUS="[%f/%t] " cmake --build --preset "$preset" -j "${TUNE_JOBS:-2}" "${targets[@]}" >>$log 2>&1 &
build=$!
trap 'kill $build 2>/dev/null' EXIT

started=$SECONDS
shown=-10
while kill -0 $build 2>/dev/null; do
    # Ends with the build, or after a second.
    timeout 1 tail --pid=$build -f /dev/null
    elapsed=$((SECONDS - started))
    step=$(grep -o '^\[[0-9]*/[0-9]*\] .*' $log | tail -n 1)
    line=$(printf '%d:%02d %s' $((elapsed / 60)) $((elapsed % 60)) "${step:-starting}")
    if [ -t 1 ]; then
        printf '\r\033[K%s' "${line:0:$((${COLUMNS:-80} - 1))}"
    elif [ $((elapsed - shown)) -ge 10 ]; then
        shown=$elapsed
        echo "$line"
    fi
done
[ ! -t 1 ] || printf '\r\033[K'
wait $build
status=$?
trap - EXIT
if [ $status != 0 ]; then
    tail -n 60 $log >&2
    exit $status
fi
echo "built in $((SECONDS - started)) s"
