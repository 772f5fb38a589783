#pragma once
// Whole-file compression of shards. Names are mosaicml-streaming's: "zstd", "gz", with an optional
// level ("zstd:7"). br, bz2 and snappy exist there too; they are known here by name and refused.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tune::loader {

enum class CompressionKind { kZstd, kGzip };

struct Compression {
    CompressionKind kind = CompressionKind::kZstd;
    int level = 3;

    /// The file name's extension, without the dot: "zstd" or "gz".
    [[nodiscard]] std::string_view extension() const;
};

/// Parses "algorithm" or "algorithm:level". Errors: kNotImplemented for br, bz2, snappy;
/// kInvalidParameterValue for any other name or a level out of range (zstd 1..22, gz 0..9).
[[nodiscard]] Result<Compression> parse_compression(std::string_view text);

/// Errors: kInternalError with the library's reason.
[[nodiscard]] Result<std::string> compress(const Compression& compression, std::string_view data);

/// Uninitialised memory of a known size.
struct OwnedBytes {
    std::unique_ptr<std::byte[]> data;
    std::size_t size = 0;
    [[nodiscard]] std::span<const std::byte> bytes() const { return {data.get(), size}; }
};

/// Decompresses exactly `size` bytes (several frames or members may follow one another); never
/// writes more, whatever the input says. Errors: kDataLoss when the input is damaged or holds
/// another number of bytes, kResourceExhausted when `size` bytes can not be had.
[[nodiscard]] Result<OwnedBytes> decompress(const Compression& compression,
                                            std::span<const std::byte> input, std::size_t size);

}  // namespace tune::loader
