#!/usr/bin/env bash
# Hadoop's own HDFS for test_hdfs.py: its jars (hadoop.txt, 90 MB) by Maven in build/hadoop, and both from Debian. Safe to
# run again, and from several tests at once: what is there stays. Says the folder last.
set -euo pipefail
cd "$(dirname "$0")/../../../.."
list=tests/contract/loader/clouds/hadoop.txt
folder=$PWD/build/hadoop
mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
if ! command -v java >/dev/null || ! command -v mvn >/dev/null; then
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless maven >/dev/null
fi
while read -r sum path; do
    jar=$folder/${path##*/}
    [ ! -e "$jar" ] || continue
    version=$(basename "$(dirname "$path")")
    name=$(basename "$(dirname "$(dirname "$path")")")
    group=$(dirname "$(dirname "$(dirname "$path")")")
    mvn -q -B dependency:copy -Dartifact="${group//\//.}:$name:$version" -DoutputDirectory="$folder/coming" >&2
    mv "$folder/coming/${path##*/}" "$jar.part"
    echo "$sum  $jar.part" | sha256sum --check --quiet
    mv "$jar.part" "$jar"
done <$list
echo "$folder"
