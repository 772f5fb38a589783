#pragma once
// Whole-file compression of shards. Names are mosaicml-streaming's: "br", "bz2", "gz", "snappy",
// "zstd", with an optional level ("zstd:7"; snappy has none).

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tune::loader {

enum class CompressionKind { kZstd, kGzip, kBrotli, kBzip2, kSnappy };

struct Compression {
    CompressionKind kind = CompressionKind::kZstd;
    int level = 3;

    /// The file name's extension, without the dot: the algorithm's name.
    [[nodiscard]] std::string_view extension() const;
};

/// Parses "algorithm" or "algorithm:level". Errors: kInvalidParameterValue for an unknown name or a
/// level out of range (zstd 1..22, gz 0..9, br 0..11, bz2 1..9).
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
