#!/usr/bin/env bash
# Hadoop's own HDFS for test_hdfs.py: its jars (hadoop.txt, 90 MB) from Maven Central in build/hadoop, and Java from Debian. Safe to
# run again, and from several tests at once: what is there stays. Says the folder last.
set -euo pipefail
cd "$(dirname "$0")/../../../.."
list=tests/contract/loader/clouds/hadoop.txt
folder=$PWD/build/hadoop
mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
if ! command -v java >/dev/null; then
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless >/dev/null
fi
while read -r sum path; do
    jar=$folder/${path##*/}
    [ ! -e "$jar" ] || continue
    curl -sSf --retry 3 -o "$jar.part" "https://repo1.maven.org/maven2/$path"
    echo "$sum  $jar.part" | sha256sum --check --quiet
    mv "$jar.part" "$jar"
done <$list
echo "$folder"
