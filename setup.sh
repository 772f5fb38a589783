#!/usr/bin/env bash
# Installs what tune needs to build, run and be tested: Debian packages, LibTorch and Arrow C++ (from their wheels, into
# .venv), the web page's packages. Safe to run again: what is there stays. Works as root or with sudo.
#
#   ./setup.sh              everything
#   ./setup.sh --no-tests   without what only the tests need (MLflow, scikit-learn, Chromium)
#   ./setup.sh --no-torch   without LibTorch (tune-trainer is then not built)
#   ./setup.sh --tools      compilers and libraries of Debian and an empty .venv alone: enough to compile most of `tune`
#   ./setup.sh --no-gpu     without the headers that only the GPU library of tune-trainer is compiled with
set -euo pipefail
cd "$(dirname "$0")"

with_tests=1
with_torch=1
with_gpu=1
only_tools=0
for argument in "$@"; do
    case "$argument" in
        --no-tests) with_tests=0 ;;
        --no-torch) with_torch=0 ;;
        --no-gpu) with_gpu=0 ;;
        --tools) only_tools=1 with_tests=0 ;;
        *)
            echo "setup.sh: unknown option '$argument' (known: --no-tests, --no-torch, --no-gpu, --tools)" >&2
            exit 2
            ;;
    esac
done

say() { printf '\033[1m==> %s\033[0m\n' "$*"; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

packages=(
    g++ cmake ninja-build ccache git curl ca-certificates python3 python3-venv
    libboost1.81-dev libsqlite3-dev nlohmann-json3-dev libsimdjson-dev libcli11-dev libyaml-cpp-dev
    libeigen3-dev libspdlog-dev libssl-dev zlib1g-dev libxxhash-dev libzstd-dev libre2-dev libcurl4-openssl-dev libbrotli-dev libbz2-dev libsnappy-dev libjpeg62-turbo-dev libpng-dev libgtest-dev libgmock-dev
    libbenchmark-dev libcairo2-dev
)
command -v node >/dev/null && command -v npm >/dev/null || packages+=(nodejs npm)
[ $with_tests = 0 ] || packages+=(chromium sqlite3 clang-format-14 clang-14 libclang-rt-14-dev)

missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
    say "Debian packages: ${missing[*]}"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# The engines that agents are started on. Their daemons are the tests' own: nothing of them is started here.
engines=(slurm-wlm munge openssh-server openssh-client)
missing=()
for package in "${engines[@]}"; do
    [ $with_tests = 0 ] || dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
    say "Debian packages of engines, for tests: ${missing[*]}"
    policy=/usr/sbin/policy-rc.d
    [ -e $policy ] && policy= || { printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null; as_root chmod +x $policy; }
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
        { [ -z "$policy" ] || as_root rm -f $policy; exit 1; }
    [ -z "$policy" ] || as_root rm -f $policy
fi

if [ ! -x .venv/bin/python ]; then
    say "Python environment .venv"
    python3 -m venv .venv
fi
[ $only_tools = 0 ] || exit 0

# Installs packages once; a change of any of the files installs them anew.
pip_install() { # "FILE..." OPTION...
    local files=$1 stamp
    shift
    # shellcheck disable=SC2086
    stamp=.venv/.installed-$(cat $files | sha256sum | cut -c1-16)
    [ -e "$stamp" ] && return
    say "Python packages of $files"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check "$@"
    touch "$stamp"
}
libraries=requirements.txt
if [ $with_tests = 1 ]; then
    pip_install tests/requirements.txt -r tests/requirements.txt
    pip_install tests/contract/loader/requirements.txt --no-deps -r tests/contract/loader/requirements.txt
    # Again after the tests' packages: MLflow asks for a pyarrow below 26, but works with it.
    libraries="requirements.txt tests/requirements.txt"
fi
if [ $with_torch = 1 ]; then
    pip_install "$libraries" --no-deps -r requirements.txt
    [ $with_tests = 0 ] ||
        pip_install tests/contract/frameworks/torch_requirements.txt \
            --no-deps -r tests/contract/frameworks/torch_requirements.txt
else
    pip_install "$libraries" --no-deps "$(grep '^pyarrow' requirements.txt)" "$(grep '^nanobind' requirements.txt)"
fi

# Gloo is inside libtorch_cpu.so, its headers are not in the wheel. Only these are taken from Debian's package: its
# library would clash with LibTorch's.
if [ $with_torch = 1 ] && [ ! -e .venv/include/gloo/context.h ]; then
    say "Headers of Gloo"
    folder=$(mktemp -d)
    (cd "$folder" && apt-get download -qq libgloo-dev 2>/dev/null && dpkg -x libgloo-dev_*.deb .)
    cp -r "$folder/usr/include/gloo" .venv/include/
    rm -r "$folder"
fi

# The GPU library compiles on every machine. Of the large wheel only the headers stay.
cuda_headers=worker/train/device/cuda_headers.txt
if [ $with_torch = 1 ] && [ $with_gpu = 1 ]; then
    pip_install $cuda_headers --no-deps "$(grep ^nvidia-cuda-crt $cuda_headers)" "$(grep ^nvidia-cuda-cccl $cuda_headers)"
    if ! ls .venv/lib/python3*/site-packages/nvidia/nccl/include/nccl.h >/dev/null 2>&1; then
        say "Headers of NCCL"
        folder=$(mktemp -d)
        .venv/bin/python -m pip download --quiet --disable-pip-version-check --no-deps -d "$folder" \
            "$(grep ^nvidia-nccl $cuda_headers)"
        .venv/bin/python - "$folder" <<'END'
import pathlib, sys, sysconfig, zipfile
wheel, = pathlib.Path(sys.argv[1]).glob("*.whl")
with zipfile.ZipFile(wheel) as archive:
    archive.extract("nvidia/nccl/include/nccl.h", sysconfig.get_path("purelib"))
END
        rm -r "$folder"
    fi
fi

if [ -f web/package-lock.json ]; then
    if [ ! -e web/node_modules/.package-lock.json ] ||
        [ web/package-lock.json -nt web/node_modules/.package-lock.json ]; then
        say "Web packages"
        (cd web && npm ci --no-audit --no-fund --loglevel=error)
        touch web/node_modules/.package-lock.json
    fi
fi
say "Ready. Build with: cmake --preset release && cmake --build --preset release"
