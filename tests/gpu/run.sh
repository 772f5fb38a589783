#!/usr/bin/env bash
# Builds the trainer and the loader against the LibTorch that is installed, without a network, and shows what works: the checks
# of `tune-trainer selfcheck`, the benchmarks, and compute-sanitizer over one short training. For a machine with a GPU and
# Python's torch; on one without, --device cpu. No GPU has run this yet.
#
#   ./tests/gpu/run.sh --vendor build/gpu-vendor.tar.xz     what vendor.sh made elsewhere
#   ./tests/gpu/run.sh                                      the libraries of this system
#   ./tests/gpu/run.sh --device cpu --torch DIR --build DIR --build-only
#
# Everything that is printed also goes to DIR/gpu-run.log; the last line is "N failed".
set -uo pipefail
cd "$(dirname "$0")/../.."

device=cuda build=build/gpu vendor='' torch='' only_build=0
while [ $# -gt 0 ]; do
    case "$1" in
        --device) device=$2; shift 2 ;;
        --vendor) vendor=$2; shift 2 ;;
        --torch) torch=$2; shift 2 ;;
        --build) build=$2; shift 2 ;;
        --build-only) only_build=1; shift ;;
        *) echo "run.sh: unknown option '$1'; see the head of tests/gpu/run.sh" >&2; exit 2 ;;
    esac
done
mkdir -p "$build"
build=$(realpath "$build")
exec > >(tee "$build/gpu-run.log") 2>&1

failed=0
say() { printf '\n==> %s\n' "$*"; }
step() { # NAME COMMAND...
    local name=$1 begin=$SECONDS
    shift
    say "$name"
    if "$@"; then echo "ok: $name ($((SECONDS - begin)) s)"; else
        echo "failed: $name ($((SECONDS - begin)) s)"
        failed=$((failed + 1))
        return 1
    fi
}
finish() {
    printf '\n%d failed\n' "$failed"
    exit $((failed > 0))
}

if [ -z "$torch" ]; then
    # Not imported: that takes seconds, and the libraries may be for another machine.
    torch=$(python3 -c 'import importlib.util, os; print(os.path.dirname(importlib.util.find_spec("torch").origin))') ||
        { echo "run.sh: python3 has no torch; give --torch DIR" >&2; exit 2; }
fi
options=(-S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTUNE_ONLY_TRAINER=ON -DTUNE_WITH_ARROW=OFF -DTUNE_TESTS=OFF
    -DTUNE_WEB=OFF -DTUNE_UNITY=ON -DTUNE_WERROR=OFF -DTUNE_WITH_TORCH=ON "-DTorch_ROOT=$torch")
if [ -n "$vendor" ]; then
    say "Unpacking $vendor"
    rm -rf "$build/vendor"
    mkdir -p "$build/vendor"
    tar -C "$build/vendor" -xJf "$vendor" || finish
    prefix=$build/vendor/usr
    options+=("-DCMAKE_PREFIX_PATH=$prefix" "-DTUNE_GLOO_INCLUDE=$prefix/include" "-DOPENSSL_ROOT_DIR=$prefix"
        "-DCMAKE_LIBRARY_PATH=$prefix/lib/x86_64-linux-gnu" "-DCMAKE_INCLUDE_PATH=$prefix/include"
        "-DCMAKE_CXX_FLAGS=-isystem $prefix/include -isystem $prefix/include/x86_64-linux-gnu")
    export LD_LIBRARY_PATH=$prefix/lib/x86_64-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi
# The header must be of the version that this LibTorch was built with; its own wheel has it where it is installed.
if [ ! -e "$torch/../nvidia/nccl/include/nccl.h" ] && [ -n "$vendor" ]; then
    wanted=$(grep -ohP 'nvidia-nccl-cu13==\K[0-9.]+' "$torch"/../torch-*.dist-info/METADATA | head -n 1)
    [ ! -e "$build/vendor/nccl/${wanted:-none}" ] || options+=("-DTUNE_NCCL_INCLUDE=$build/vendor/nccl/$wanted")
fi

say "Machine"
uname -srm
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null || echo "nvidia-smi: none"
grep -h '^Version' "$torch"/../torch-*.dist-info/METADATA 2>/dev/null || true

step "configure" cmake "${options[@]}" || finish
step "build" cmake --build "$build" || finish
[ $only_build = 0 ] || finish

bin=$build/bin
selfcheck() { # once: the document is for machines, its lines for people
    "$bin/tune-trainer" selfcheck --device "$device" --json >"$build/selfcheck.json"
    local result=$?
    python3 - "$build/selfcheck.json" <<'END'
import json, sys
for step in json.load(open(sys.argv[1]))["steps"]:
    value = "%.4g %s" % (step["value"], step["unit"]) if "unit" in step else ""
    print("%2d %-7s %-14s %-14s %s" % (step["number"], step["status"], step["name"], value, step["detail"]))
END
    return $result
}
step "selfcheck" selfcheck
step "step benchmarks" "$bin/train_bench" --device "$device"
short=(); [ "$device" = cuda ] || short=(--short)
step "GPU benchmarks" python3 tests/gpu/bench.py --bin "$bin" --device "$device" "${short[@]}"
if [ "$device" = cuda ]; then
    if command -v compute-sanitizer >/dev/null; then
        # One step of the checks that does a bit of everything: uploads, a backward pass, the Reducer.
        step "compute-sanitizer" compute-sanitizer --error-exitcode 9 --target-processes all \
            "$bin/tune-trainer" selfcheck --device cuda --step reducer
    else
        say "compute-sanitizer: not on this machine"
    fi
fi
finish
