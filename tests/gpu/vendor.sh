#!/usr/bin/env bash
# Collects what the trainer needs to build beside LibTorch, for a machine without a network: Debian's packages, unpacked and
# made relocatable, and the headers of NCCL for another LibTorch than ours. Writes one archive of about 4 MB.
#
#   ./tests/gpu/vendor.sh build/gpu-vendor.tar.xz
#
# There: ./tests/gpu/run.sh --vendor build/gpu-vendor.tar.xz
set -euo pipefail
cd "$(dirname "$0")/../.."
archive=$(realpath -m "${1:-build/gpu-vendor.tar.xz}")

packages=(
    libyaml-cpp-dev libyaml-cpp0.7 libspdlog-dev libspdlog1.10 libfmt-dev libfmt9 nlohmann-json3-dev libcli11-dev
    libxxhash-dev libxxhash0 libzstd-dev libzstd1 libbrotli-dev libbrotli1 libbz2-dev libbz2-1.0 libsnappy-dev
    libsnappy1v5 zlib1g-dev zlib1g libssl-dev libssl3 libcurl4-openssl-dev libgloo-dev
)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo "==> Debian packages: ${packages[*]}"
mkdir "$folder/debs" "$folder/root"
(cd "$folder/debs" && apt-get download -qq "${packages[@]}" 2>/dev/null)
for package in "$folder"/debs/*.deb; do dpkg -x "$package" "$folder/root"; done

# One folder usr/, links within it, nothing that is neither a header, a shared library nor for CMake.
root=$folder/root
[ ! -d "$root/lib" ] || { cp -a "$root/lib/." "$root/usr/lib/" && rm -r "$root/lib"; }
rm -rf "$root/usr/share/doc" "$root/usr/share/man" "$root/usr/share/lintian" "$root/usr/bin" "$root/etc"
find "$root" -name '*.a' -delete
rm -f "$root"/usr/lib/x86_64-linux-gnu/libgloo* "$root"/usr/lib/libgloo*  # would clash with LibTorch's own
find "$root" -type l | while read -r link; do
    target=$(readlink "$link")
    [[ $target != /* ]] || ln -sfn "$(basename "$target")" "$link"
done
find "$root" -xtype l -delete

# Which NCCL a LibTorch was built with decides the size of its structs: a header for each that we build for.
while read -r version; do
    echo "==> Header of NCCL $version"
    .venv/bin/python -m pip download --quiet --disable-pip-version-check --no-deps -d "$folder/nccl" \
        "nvidia-nccl-cu13==$version"
    mkdir -p "$root/nccl/$version"
    unzip -p "$folder"/nccl/*.whl nvidia/nccl/include/nccl.h >"$root/nccl/$version/nccl.h"
    rm -r "$folder/nccl"
done < <(grep -oP '^nvidia-nccl-cu13==\K.*' worker/train/device/cuda_headers.txt; echo 2.28.9)

mkdir -p "$(dirname "$archive")"
tar -C "$root" -cJf "$archive" .
size=$(stat -c %s "$archive")
[ "$size" -le $((64 << 20)) ] || { echo "vendor.sh: $archive is larger than 64 MB" >&2; exit 1; }
echo "==> $archive: $((size >> 10)) KB"
