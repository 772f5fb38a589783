#!/usr/bin/env bash
# The environment of the frameworks that the other tests do without (test_apart.py). Safe to run again: what is there stays. Says the path of its
# Python last.
set -euo pipefail
cd "$(dirname "$0")/../../../.."
environment=build/frameworks-venv
requirements=tests/contract/loader/frameworks/requirements.txt
mkdir -p build
exec 9>build/.frameworks-lock
flock 9
stamp=$environment/.installed-$(sha256sum $requirements | cut -c1-16)
if [ ! -e "$stamp" ]; then
    rm -rf "$environment"
    .venv/bin/python -m venv "$environment"
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check -r $requirements
    touch "$stamp"
fi
echo "$PWD/$environment/bin/python"
