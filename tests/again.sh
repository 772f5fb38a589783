# Sourced by run.sh: what failed while two lanes of suites shared the machine runs once more, alone.
#
# Many tests are of real processes, servers and browsers with times to keep. A mistake fails again; a test that passes now
# is counted as passed, and named in the closing lines, so that nobody takes it for a clean run and somebody mends it. More
# than $again_max failures of one program are a mistake, and so is one that died without a list.
again_max=5

# Keeps for later how the failures of NAME are run again.
fails_again_as() { # NAME COUNT COMMAND...
    [ "$2" -gt 0 ] && [ "$2" -le $again_max ] || return 0
    printf '%q ' "${@:3}" >"$logs/again-$1"
}

gtest_again() { # NAME PROGRAM COUNT
    local tests
    tests=$(sed -n 's/^\[  FAILED  \] \([^ ,]*\).*$/\1/p' "$logs/$1.log" | grep -F . | sort -u | paste -sd:)
    [ -z "$tests" ] || fails_again_as "$1" "${3:-0}" timeout 900 "$2" "--gtest_filter=$tests"
}

node_again() { # NAME COUNT
    local files
    files=$(grep -A 8 '^ *not ok' "$logs/$1.log" | grep -oP "location: '\K[^':]+" | sort -u)
    # shellcheck disable=SC2086 # no test's path has a blank
    [ -z "$files" ] || fails_again_as "$1" "${2:-0}" node --test --test-reporter=tap $files
}

# Runs what was kept; moves what passes now from failed to passed.
run_again() {
    local file name bad
    again_names=()
    for file in "$logs"/again-*; do
        [ -e "$file" ] || continue
        name=${file##*/again-}
        say "Once more, alone: $name"
        if bash "$file" >"$logs/$name-again.log" 2>&1; then
            bad=$(<"$logs/bad-$name")
            failed=$((failed - bad))
            passed=$((passed + bad))
            again_names+=("$name")
            echo "$name: $bad passed now; why not at first is in $logs/$name.log"
        else
            tail -n 60 "$logs/$name-again.log"
        fi
    done
}
