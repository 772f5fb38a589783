#!/usr/bin/env bash
# Builds Horovod for test_horovod.py into build/horovod-venv: its Gloo and torch, no MPI. About 6 minutes of one core, so that
# tests/engines/setup.sh leaves it out; without it those tests are skipped. Safe to run again: what is there stays.
# Horovod 0.28.1, the latest release, asks for C++14, which torch no longer takes: that number is the only thing changed in it.
set -euo pipefail
cd "$(dirname "$0")/../../.."
version=0.28.1
environment=$PWD/build/horovod-venv
stamp=$environment/.installed-$version
if [ ! -e "$stamp" ]; then
    rm -rf "$environment"
    .venv/bin/python -m venv "$environment"
    # What all other tests have, torch first of all, and what test_spark.py has.
    for one in .venv build/engines-venv; do
        "$one/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])'
    done >"$("$environment/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/tune_tests.pth"
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check 'setuptools==65.5.0' 'wheel==0.48.0'
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    "$environment/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary horovod \
        -d "$work" "horovod==$version"
    tar -C "$work" -xzf "$work/horovod-$version.tar.gz"
    sed -i 's/CMAKE_CXX_STANDARD 14/CMAKE_CXX_STANDARD 20/' "$work/horovod-$version/CMakeLists.txt" \
        "$work/horovod-$version/horovod/torch/CMakeLists.txt"
    mkdir "$work/cuda"
    libraries=$(cd tests/contract/frameworks && "$environment/bin/python" -c \
        "import sys; sys.path.insert(0, '.'); import absent_cuda; print(absent_cuda.for_processes('$work/cuda')['LD_LIBRARY_PATH'])")
    LD_LIBRARY_PATH=$libraries PATH=$environment/bin:$PATH HOROVOD_WITH_GLOO=1 HOROVOD_WITH_PYTORCH=1 HOROVOD_WITHOUT_MPI=1 \
        HOROVOD_WITHOUT_TENSORFLOW=1 HOROVOD_WITHOUT_MXNET=1 HOROVOD_CPU_OPERATIONS=GLOO \
        "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
        "$work/horovod-$version"
    touch "$stamp"
fi
echo "$environment/bin/python"
