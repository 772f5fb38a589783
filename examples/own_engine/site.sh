#!/bin/sh
# An engine of one's own for `tune run --on`: the contract is docs/engines/exec.md. This one starts agents as processes of
# this machine, as many as the file $SITE_ROOM says (default: 2); where a real site would submit a job it starts one.
set -eu
folder=$TUNE_LAUNCH_STATE/site
mkdir -p "$folder"

lives() { # ID
    read -r pid start < "$folder/$1.pid" && [ "$(started "$pid")" = "$start" ]
}
started() { # PID: when it began, so that a process that has its number later is not taken for it
    sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20
}
room() {
    running=0
    for file in "$folder"/*.pid; do
        [ -e "$file" ] && lives "$(basename "$file" .pid)" && running=$((running + 1))
    done
    [ "$running" -lt "${SITE_ROOM:-2}" ]
}
begin() { # ID GROUP STUDY
    printf '%s\t%s\n' "$2" "$3" > "$folder/$1.of"
    # A shell starts what runs in the background with SIGINT ignored, and then no trap of it works: env gives it back.
    TUNE_AGENT_NAME=$1 env --default-signal=INT setsid sh "$folder/keep.sh" "$folder/$1" "$4" > "$folder/$1.log" 2>&1 < /dev/null &
    echo "$! $(started $!)" > "$folder/$1.pid"
}

case "$1" in
check)
    command -v setsid > /dev/null || { echo "this site needs setsid" >&2; exit 1; }
    # Keeps the agent's exit code, and hands the signals on to it.
    cat > "$folder/keep.sh" <<'END'
sh "$2" & agent=$!
trap 'kill -INT $agent' INT
trap 'kill -TERM $agent' TERM
code=143
while kill -0 $agent 2>/dev/null; do wait $agent; code=$?; done
echo $code > "$1.exit"
END
    ;;
start)
    n=0
    while [ "$n" -lt "$TUNE_LAUNCH_COUNT" ]; do
        n=$((n + 1))
        id=$(date +%s%N)
        if room; then
            begin "$id" "$TUNE_LAUNCH" "$TUNE_LAUNCH_STUDY" "$TUNE_AGENT_SCRIPT"
        else
            printf '%s\t%s\t%s\n' "$TUNE_LAUNCH" "$TUNE_LAUNCH_STUDY" "$TUNE_AGENT_SCRIPT" > "$folder/$id.waits"
        fi
    done
    ;;
list)
    tab=$(printf '\t')
    for file in "$folder"/*.waits; do # the site's scheduler: what waits starts where there is room
        [ -e "$file" ] || continue
        id=$(basename "$file" .waits)
        IFS=$tab read -r group study script < "$file"
        if room; then rm "$file"; begin "$id" "$group" "$study" "$script"; continue; fi
        [ "${TUNE_LAUNCH:-$group}" = "$group" ] || continue
        printf '%s\tpending\t\tthe site has room for %s\t%s\t%s\n' "$id" "${SITE_ROOM:-2}" "$group" "$study"
    done
    for file in "$folder"/*.pid; do
        [ -e "$file" ] || continue
        id=$(basename "$file" .pid)
        IFS=$tab read -r group study < "$folder/$id.of"
        [ "${TUNE_LAUNCH:-$group}" = "$group" ] || continue
        state=ended reason=
        if lives "$id"; then
            state=running
        elif [ -s "$folder/$id.exit" ] && [ "$(cat "$folder/$id.exit")" != 0 ]; then
            state=failed reason="exit code $(cat "$folder/$id.exit")"
        fi
        printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$id" "$state" "$(hostname)" "$reason" "$group" "$study"
    done
    ;;
stop) # drain, stop or kill, then the ids
    case "$2" in drain) signals=INT ;; stop) signals=TERM ;; *) signals="TERM INT" ;; esac # a second signal: at once
    shift 2
    for id in "$@"; do
        rm -f "$folder/$id.waits"
        [ -e "$folder/$id.pid" ] && lives "$id" || continue
        read -r pid start < "$folder/$id.pid"
        for signal in $signals; do kill -s $signal "$pid"; done
    done
    ;;
log) cat "$folder/$2.log" ;;
*) echo "site.sh: unknown verb '$1'" >&2; exit 2 ;;
esac
