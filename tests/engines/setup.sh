#!/usr/bin/env bash
# The environment of tests/engines: Spark and Ray on top of the packages of all other tests, which it finds in .venv. Java is Debian's, and so
# is the kernel for test_cgroups.py.
# TensorFlow has one of its own, build/tensorflow-venv.
# Safe to run again: what is there stays. Says the path of its Python last.
set -euo pipefail
cd "$(dirname "$0")/../.."
environment=build/engines-venv
stamp=$environment/.installed-$(sha256sum tests/engines/requirements.txt | cut -c1-16)

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
missing=()
command -v java >/dev/null || missing+=(openjdk-17-jre-headless)
command -v linux.uml >/dev/null || missing+=(user-mode-linux) # for cgroups of version 2
if [ ${#missing[@]} -gt 0 ]; then
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
if [ ! -e "$stamp" ]; then
    rm -rf "$environment"
    .venv/bin/python -m venv "$environment"
    # By a .pth file, so that pip sees what is installed there and the file's own packages come first.
    "$PWD/.venv/bin/python" -c 'import site; print(site.getsitepackages()[0])' \
        >"$("$environment/bin/python" -c 'import site; print(site.getsitepackages()[0])')/tune_tests.pth"
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check -r tests/engines/requirements.txt
    touch "$stamp"
fi
tensorflow=build/tensorflow-venv
stamp=$tensorflow/.installed-$(sha256sum tests/engines/tensorflow.txt | cut -c1-16)
if [ ! -e "$stamp" ]; then
    rm -rf "$tensorflow"
    .venv/bin/python -m venv "$tensorflow"
    "$tensorflow/bin/python" -m pip install --quiet --disable-pip-version-check -r tests/engines/tensorflow.txt
    touch "$stamp"
fi
echo "$PWD/$environment/bin/python"
