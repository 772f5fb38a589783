#!/usr/bin/env bash
# From nothing to a tuned network: installs, builds, starts the server with its page, tunes a network on 1,797 real
# images of handwritten digits (30 trials), prints the best trial and keeps serving the page.
#
#   ./examples/quickstart.sh            keeps serving until Ctrl-C
#   ./examples/quickstart.sh --once     ends when the study has ended
#
# Environment: TUNE_PORT (5000; 0 takes a free one), TUNE_DATA (./tune-data), TUNE_JOBS (2, compile jobs)
set -euo pipefail
cd "$(dirname "$0")/.."

once=0
for argument in "$@"; do
    case "$argument" in
        --once) once=1 ;;
        *) echo "quickstart.sh: unknown option '$argument' (known: --once)" >&2; exit 2 ;;
    esac
done
port=${TUNE_PORT:-5000}
data=${TUNE_DATA:-$PWD/tune-data}
bin=$PWD/build/release/bin
digits=$PWD/examples/digits/out/mds

say() { printf '\033[1m==> %s\033[0m\n' "$*"; }

# What neither the example nor a machine without a GPU needs is left out here.
downloads=(--no-tests)
options=()
if [ ! -e /dev/nvidiactl ]; then
    downloads+=(--no-gpu)
    options+=(-DTUNE_COMPANIONS=OFF)
fi

# Most of `tune` needs Debian's packages only: it compiles while LibTorch, Arrow and the page's packages are downloaded.
./setup.sh --tools
say "Downloading LibTorch, Arrow and the page's packages, and building (the first time takes some minutes)"
mkdir -p build
./setup.sh "${downloads[@]}" >build/setup.log 2>&1 &
setup=$!
trap 'kill "$setup" 2>/dev/null || true' EXIT
if [ ! -e build/release/CMakeCache.txt ]; then
    # No more than takes the time of the downloads: CMake looks for what they bring after that.
    ./tests/build.sh "${options[@]}" -DTUNE_WITH_TORCH=OFF -DTUNE_WITH_ARROW=OFF tune_tracker_store
fi
wait "$setup" || { cat build/setup.log >&2; exit 1; }
trap - EXIT
./tests/build.sh "${options[@]}" -DTUNE_WITH_TORCH=AUTO -DTUNE_WITH_ARROW=AUTO tune tune-trainer tune-data
if [ ${#options[@]} -gt 0 ]; then
    echo "Left out: the trainer's GPU library, and what reads data sets at URLs. To build both:"
    echo "    ./setup.sh --no-tests && ./tests/build.sh tune-trainer tune-data"
fi

if [ ! -f "$digits/train/index.json" ]; then
    say "Converting the digits to MDS shards"
    "$bin/tune-data" convert examples/data/digits.csv "$digits" \
        --pack 'image=p0..p63:uint8:8,8' --columns label:int --split train=0.8,val=0.2 --seed 1
fi

say "Starting the server"
announcement=$(mktemp -u)
mkfifo "$announcement"
"$bin/tune" server --port "$port" --data "$data" >"$announcement" &
server=$!
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true' EXIT
exec 3<"$announcement" # stays open, so that the server's output always has a reader
rm -f "$announcement"
read -r line <&3 || exit 1 # the server says why on stderr
url=$(grep -o 'http://[^ ]*' <<<"$line")
read -r line <&3 || exit 1
echo "Open the page now and watch: $(grep -o 'http://[^ ]*' <<<"$line")"

say "Tuning: 30 trials of a small network on real data"
"$bin/tune" run examples/digits/study.yaml --server "$url"

say "Best trial"
"$bin/tune" best digits --server "$url"
echo "The page: $("$bin/tune" open --server "$url" --data "$data")"
if [ $once = 0 ]; then
    echo "Still serving; Ctrl-C ends it. Start it again with: build/release/bin/tune server --data $data"
    wait "$server"
fi
