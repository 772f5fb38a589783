#!/usr/bin/env bash
# The emulators of test_clouds.py: gcp-storage-emulator for Google's storage and Azurite (Microsoft's own) for Azure's, in
# build/emulators. Safe to run again, and from several tests at once: what is there stays. Says their folder last.
set -euo pipefail
cd "$(dirname "$0")/../../../.."
folder=$PWD/build/emulators
mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
stamp=$folder/.installed-$(cat tests/contract/loader/clouds/{requirements.txt,package.json} | sha256sum | cut -c1-16)
if [ ! -e "$stamp" ]; then
    rm -rf "$folder/python" "$folder/node_modules"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --target "$folder/python" \
        -r tests/contract/loader/clouds/requirements.txt
    cp tests/contract/loader/clouds/package.json "$folder/"
    npm install --prefix "$folder" --no-audit --no-fund --no-package-lock --ignore-scripts --loglevel=error
    touch "$stamp"
fi
echo "$folder"
