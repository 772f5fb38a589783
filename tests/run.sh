#!/usr/bin/env bash
# Installs, builds and runs the tests: all of them but those of minutes and of other builds, which are named below. The last line is "N passed, N failed"; the exit code is 0 only without failures.
#
#   ./tests/run.sh                    unit docs contract differential e2e launch web examples package engines minimal benchmarks
#   ./tests/run.sh launch             agents on engines: a real Slurm and sshd, an API server as of Kubernetes, a script
#   ./tests/run.sh package            the .deb, the .tar.gz and the wheel, each installed in a clean root
#   ./tests/run.sh engines            Spark, Ray, Optuna and Hyperopt; with TUNE_ENGINES_LONG=1 also the tests of minutes
#   ./tests/run.sh benchmarks         that they compile; tests/bench/run.py runs them
#   ./tests/run.sh asan tsan          the unit tests under the sanitizers (builds each: 15 minutes more)
#   ./tests/run.sh fuzz               libFuzzer, 5 s a target (builds them); with TUNE_FUZZ_SECONDS so long, and every target. What
#                                     it ever found is replayed by the unit tests
#   ./tests/run.sh unit e2e           any of these suites
#   ./tests/run.sh --no-setup unit    without looking at the installed packages first
set -uo pipefail
cd "$(dirname "$0")/.."

setup=1
suites=()
for argument in "$@"; do
    case "$argument" in
        --no-setup) setup=0 ;;
        unit | docs | contract | differential | e2e | launch | web | examples | package | engines | minimal | benchmarks | fuzz | asan | tsan) suites+=("$argument") ;;
        *) echo "run.sh: unknown suite '$argument'; see the head of tests/run.sh" >&2; exit 2 ;;
    esac
done
[ ${#suites[@]} -gt 0 ] || suites=(unit docs contract differential e2e launch web examples package engines minimal
    benchmarks)

passed=0
failed=0
jobs=${TUNE_JOBS:-2}
logs=build/test-logs
export TUNE_BIN_DIR=$PWD/build/release/bin
mkdir -p $logs
rm -rf $logs/lane-* $logs/again-* $logs/bad-* $logs/cache-*
source tests/again.sh

say() { printf '\n\033[1m==> %s\033[0m\n' "$*"; }

# Adds up what a runner's own closing lines say; a runner that died without one counts as a failure.
count() { # NAME PASSED FAILED STATUS
    local good=${2:-0} bad=${3:-0}
    if [ "$4" != 0 ] && [ "$bad" = 0 ]; then bad=1; fi
    if [ "$4" = 0 ] && [ "$good" = 0 ]; then bad=$((bad + 1)); fi
    passed=$((passed + good))
    failed=$((failed + bad))
    printf '%-40s %5d passed %5d failed\n' "$1" "$good" "$bad"
    [ "$bad" = 0 ] && return
    echo "$bad" >"$logs/bad-$1"
    echo "--- end of $logs/$1.log:"
    tail -n 60 "$logs/$1.log"
    grep -A 16 '^not ok' "$logs/$1.log" || true # of node's tests, which do not say at the end what failed
}

number() { grep -oP "$1" "$2" | tail -n 1; }

configure_and_build() { # PRESET [TARGET...]
    say "Build ($*)"
    TUNE_JOBS=$jobs ./tests/build.sh --preset "$@" 2>"$logs/build-$1.log" && return 0
    count "build-$1" 0 1 1
    return 1
}

gtests() { # SUITE BIN_DIR
    local program name status bad
    for program in "$2"/*_tests; do
        name=$1-$(basename "$program")
        timeout 900 "$program" --gtest_brief=0 >"$logs/$name.log" 2>&1
        status=$?
        bad=$(number '\[  FAILED  \] \K\d+(?= tests?, listed)' "$logs/$name.log")
        count "$name" "$(number '\[  PASSED  \] \K\d+' "$logs/$name.log")" "$bad" $status
        [ $status = 0 ] || gtest_again "$name" "$program" "$bad"
    done
}

pytests() { # SUITE PATH...; PYTHON runs them, if it is set
    local log=$logs/$1.log status bad errors
    local command=("${PYTHON:-.venv/bin/python}" -m pytest -q -ra --durations=25 --color=no --timeout=300 -o "cache_dir=$PWD/$logs/cache-$1"
        "${@:2}")
    "${command[@]}" >"$log" 2>&1
    status=$?
    bad=$(number '\d+(?= failed)' "$log")
    errors=$(number '\d+(?= errors?\b)' "$log")
    bad=$((${bad:-0} + ${errors:-0}))
    count "$1" "$(number '\d+(?= passed)' "$log")" $bad $status
    [ $status = 0 ] || fails_again_as "$1" $bad "${command[@]}" --last-failed --last-failed-no-failures=none
}

node_tests() { # NAME FILE...
    local log=$logs/$1.log status bad name=$1
    shift
    node --test --test-reporter=tap "$@" >"$log" 2>&1
    status=$?
    bad=$(number '^# fail \K\d+' "$log")
    count "$name" "$(number '^# pass \K\d+' "$log")" "$bad" $status
    [ $status = 0 ] || node_again "$name" "$bad"
}

suite_unit() {
    gtests unit build/release/bin
    node_tests web-unit web/test/*.test.mjs
}
suite_docs() { pytests docs tests/docs; }
suite_contract() { pytests contract tests/contract; }
suite_differential() { pytests differential tests/differential; }
suite_e2e() { pytests e2e tests/e2e; }
suite_launch() { pytests launch tests/engines/{exec,ssh,slurm,k8s}; }
suite_web() { node_tests web tests/web/*.test.mjs; }
suite_examples() { pytests examples tests/examples; }
suite_package() { pytests package tests/package; }
suite_engines() {
    local python
    if python=$(./tests/engines/setup.sh 2>"$logs/engines-setup.log" | tail -n 1) && [ -x "$python" ]; then
        PYTHON=$python pytests engines tests/engines/test_*.py
        # The loader with Spark; of the same names as files of tests/engines, so that they run by themselves.
        PYTHON=$python pytests engines-loader tests/contract/loader/{test_spark,test_delta_spark}.py \
            tests/contract/loader/frameworks/{test_notebooks,test_streaming_ranks}.py
    else
        cp "$logs/engines-setup.log" "$logs/engines.log"
        count engines 0 1 1
    fi
}

# Without LibTorch and Arrow there is no tune-trainer, and no tables in the loader; all else is the same code as in
# build/release, where `tune` needs neither. Unoptimized code, which compiles in half the time, is enough.
suite_minimal() {
    local log=$logs/minimal.log status
    say "Build without LibTorch and Arrow"
    cmake --preset debug -B build/minimal -DTUNE_UNITY=ON -DTUNE_WITH_TORCH=OFF -DTUNE_WITH_ARROW=OFF -DTUNE_WEB=OFF \
        -DTUNE_BENCH=OFF -DCMAKE_CXX_FLAGS_DEBUG=-O0 >"$log" 2>&1 &&
        cmake --build build/minimal -j "$jobs" --target tune-data loader_{dataset,format,rows,tools}_tests >>"$log" 2>&1 &&
        cmake --build build/minimal --target help >"$logs/minimal-targets.log" &&
        ldd build/release/bin/tune >"$logs/minimal-libraries.log" &&
        ! grep tune-trainer "$logs/minimal-targets.log" >>"$log" &&
        ! grep -iE 'torch|arrow|parquet' "$logs/minimal-libraries.log" >>"$log"
    status=$?
    count minimal $((status == 0)) 0 $status
    [ $status != 0 ] || gtests minimal build/minimal/bin
}

# The targets of tests/fuzz with their corpora, for a fixed time; what breaks one stays in build/test-logs. A run of all
# tests tries the same changes each time; with TUNE_FUZZ_SECONDS they are new ones, and the targets that take minutes to
# build run too.
suite_fuzz() {
    local program name log status seconds=5 seed=1 target=fuzz_targets
    [ -z "${TUNE_FUZZ_SECONDS:-}" ] || { seconds=$TUNE_FUZZ_SECONDS seed=0 target=fuzz_all; }
    say "Build (fuzz)"
    if ! { cmake --preset fuzz && cmake --build --preset fuzz -j "$jobs" --target $target; } \
        >"$logs/build-fuzz.log" 2>&1; then
        tail -n 60 "$logs/build-fuzz.log"
        count build-fuzz 0 1 1
        return
    fi
    for program in build/fuzz/bin/fuzz_*; do
        name=$(basename "$program")
        log=$logs/$name.log
        mkdir -p "build/fuzz/corpus/$name" "build/fuzz/found/$name"
        [ ! -e "tests/fuzz/found/${name#fuzz_}.txt" ] ||
            python3 tests/fuzz/found.py unpack "tests/fuzz/found/${name#fuzz_}.txt" "build/fuzz/found/$name"
        "$program" -seed=$seed -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
            -artifact_prefix="$logs/$name-" "build/fuzz/corpus/$name" "tests/fuzz/corpus/${name#fuzz_}" \
            "build/fuzz/found/$name" >"$log" 2>&1
        status=$?
        count "$name" $((status == 0)) 0 $status
    done
}

suite_benchmarks() {
    configure_and_build release benchmarks || return
    count benchmarks 1 0 0
    pytests gpu-bench tests/e2e/trainer/test_trainer_gpu_bench.py
}
suite_asan() { configure_and_build asan && gtests asan build/asan/bin; }
suite_tsan() { configure_and_build tsan && gtests tsan build/tsan/bin; }

started=$SECONDS
if [ $setup = 1 ]; then
    ./setup.sh || { echo "run.sh: setup.sh failed" >&2; echo "0 passed, 1 failed"; exit 1; }
fi

# Runs suites one after the other in the background; what they passed and failed is in the lane's file when it ends.
lane() { # FILE SUITE...
    local file=$1 suite
    shift
    passed=0
    failed=0
    for suite in "$@"; do
        say "Suite: $suite"
        "suite_$suite"
    done
    echo "$passed $failed" >"$file"
}

# The suites of processes and servers wait more than they compute, so that two lanes take little longer than the longer one.
# The unit tests compile beside them, with what processor they leave; the suites that run those, or that build in the same
# folder, come after.
run_suites() {
    local suite waiting=() first=() second=() file good bad built
    for suite in "${suites[@]}"; do
        case "$suite" in
            e2e | contract) waiting+=("$suite") ;;
            docs | differential | launch | web) first+=("$suite") ;;
            *) second+=("$suite") ;;
        esac
    done
    nice -n 19 env TUNE_JOBS="$jobs" ./tests/build.sh >"$logs/build-tests.log" 2>&1 &
    built=$!
    lane $logs/lane-waiting "${waiting[@]}" &
    lane $logs/lane-first "${first[@]}"
    if wait $built; then
        echo "0 0" >$logs/lane-build
    else
        count build-tests 0 1 1
        echo "0 1" >$logs/lane-build
    fi
    lane $logs/lane-second "${second[@]}"
    passed=0
    failed=0
    wait
    for file in $logs/lane-{waiting,first,build,second}; do
        if ! read -r good bad <"$file"; then good=0 bad=1; fi # the lane itself died
        passed=$((passed + good))
        failed=$((failed + bad))
    done
}

again_names=()
if configure_and_build release programs; then
    run_suites
    run_again
fi

say "All suites took $((SECONDS - started)) s"
[ ${#again_names[@]} = 0 ] || echo "Some passed only when they ran once more, alone: ${again_names[*]}"
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
