#!/usr/bin/env bash
# Whether the trainer and its GPU library compile and link against another LibTorch than ours: downloads the wheel (500 MB),
# takes headers and four libraries out of it, builds without a network as tests/gpu/run.sh does on a machine with a GPU, and
# looks every symbol of the GPU library up in that LibTorch. Nothing is run: the rest of the wheel's libraries is not there.
#
#   ./tests/gpu/other_torch.sh 2.11.0
set -euo pipefail
cd "$(dirname "$0")/../.."
version=${1:?"usage: other_torch.sh VERSION"}
folder=build/torch-$version
vendor=build/gpu-vendor.tar.xz

if [ ! -e "$folder/torch/lib/libtorch_cuda.so" ]; then
    mkdir -p "$folder"
    .venv/bin/python -m pip download --quiet --disable-pip-version-check --no-deps -d "$folder" "torch==$version"
    unzip -q -o "$folder"/torch-*.whl 'torch/include/*' 'torch/lib/libtorch_c*.so' 'torch/lib/libc10*.so' \
        'torch-*.dist-info/METADATA' -d "$folder"
    rm "$folder"/torch-*.whl
fi
[ -e "$vendor" ] || ./tests/gpu/vendor.sh "$vendor"
# The CUDA runtime beside it is that of ours.
mkdir -p "$folder/nvidia"
ln -sfn "$(realpath .venv/lib/python3*/site-packages/nvidia/cu13)" "$folder/nvidia/cu13"
unshare --net --map-root-user \
    ./tests/gpu/run.sh --torch "$PWD/$folder/torch" --vendor "$vendor" --build "build/gpu-$version" --build-only
Torch_ROOT=$PWD/$folder/torch TUNE_BIN_DIR=$PWD/build/gpu-$version/bin \
    .venv/bin/python -m pytest -q -p no:cacheprovider tests/e2e/trainer/test_trainer_gpu_library.py -k symbol
