// Five algorithms behind one interface. Decompression writes into memory of the size that the index
// states and never beyond it, so a hostile file cannot make it allocate; a result of any other size
// is an error. Several frames or members in one file are read as their concatenation, as the tools
// that write them define it.

#include "loader/format/compression.h"

#include <brotli/decode.h>
#include <brotli/encode.h>
#include <bzlib.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <new>

namespace tune::loader {
namespace {

constexpr int kZlibGzip = 15 + 16;  // window bits, plus zlib's flag for the gzip format

Error damaged(const char* what) {
    return Error{Code::kDataLoss, std::string("its compressed data is damaged (") + what + ")"};
}

Error wrong_size(std::size_t expected, const char* relation) {
    return Error{Code::kDataLoss, std::string("it decompresses to ") + relation + " than the " +
                                      std::to_string(expected) + " bytes that the index states"};
}

Result<std::string> compress_brotli(int level, std::string_view data) {
    std::string out(BrotliEncoderMaxCompressedSize(data.size()) + 16, '\0');
    std::size_t size = out.size();
    if (!BrotliEncoderCompress(level, BROTLI_DEFAULT_WINDOW, BROTLI_MODE_GENERIC, data.size(),
                               reinterpret_cast<const std::uint8_t*>(data.data()), &size,
                               reinterpret_cast<std::uint8_t*>(out.data())))
        return Error{Code::kInternalError, "brotli: compression failed"};
    out.resize(size);
    return out;
}

Result<std::string> compress_bzip2(int level, std::string_view data) {
    // bzlib.h: at most 1 % and 600 bytes more than the input.
    std::string out(data.size() + data.size() / 100 + 601, '\0');
    auto size = static_cast<unsigned>(out.size());
    if (BZ2_bzBuffToBuffCompress(out.data(), &size, const_cast<char*>(data.data()),
                                 static_cast<unsigned>(data.size()), level, 0, 0) != BZ_OK)
        return Error{Code::kInternalError, "bzip2: compression failed"};
    out.resize(size);
    return out;
}

Result<std::string> compress_snappy(std::string_view data) {
    std::size_t size = snappy_max_compressed_length(data.size());
    std::string out(size, '\0');
    if (snappy_compress(data.data(), data.size(), out.data(), &size) != SNAPPY_OK)
        return Error{Code::kInternalError, "snappy: compression failed"};
    out.resize(size);
    return out;
}

Result<std::string> compress_zstd(int level, std::string_view data) {
    std::string out(ZSTD_compressBound(data.size()), '\0');
    const std::size_t size = ZSTD_compress(out.data(), out.size(), data.data(), data.size(), level);
    if (ZSTD_isError(size))
        return Error{Code::kInternalError, std::string("zstd: ") + ZSTD_getErrorName(size)};
    out.resize(size);
    return out;
}

Result<std::string> compress_gzip(int level, std::string_view data) {
    z_stream stream{};
    if (deflateInit2(&stream, level, Z_DEFLATED, kZlibGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return Error{Code::kInternalError, "zlib: cannot begin to compress"};
    std::string out(deflateBound(&stream, data.size()), '\0');
    // Shards are smaller than 4 GiB, which is what zlib's counters hold.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
    stream.avail_in = static_cast<uInt>(data.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    const int status = deflate(&stream, Z_FINISH);
    const std::size_t size = stream.total_out;
    deflateEnd(&stream);
    if (status != Z_STREAM_END) return Error{Code::kInternalError, "zlib: compression ended early"};
    out.resize(size);
    return out;
}

Result<void> decompress_zstd(std::span<const std::byte> input, std::span<std::byte> output) {
    const std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream(ZSTD_createDStream(),
                                                                            &ZSTD_freeDStream);
    if (!stream) return Error{Code::kResourceExhausted, "zstd: out of memory"};
    ZSTD_inBuffer in{input.data(), input.size(), 0};
    ZSTD_outBuffer out{output.data(), output.size(), 0};
    std::size_t hint = 1;
    while (in.pos < in.size || hint != 0) {
        const std::size_t in_before = in.pos;
        const std::size_t out_before = out.pos;
        hint = ZSTD_decompressStream(stream.get(), &out, &in);
        if (ZSTD_isError(hint)) return damaged(ZSTD_getErrorName(hint));
        if (hint != 0 && in.pos == in_before && out.pos == out_before)
            return out.pos == out.size ? wrong_size(output.size(), "more")
                                       : damaged("it ends in the middle of a frame");
    }
    if (out.pos != out.size) return wrong_size(output.size(), "less");
    return {};
}

Result<void> decompress_gzip(std::span<const std::byte> input, std::span<std::byte> output) {
    z_stream stream{};
    if (inflateInit2(&stream, kZlibGzip) != Z_OK)
        return Error{Code::kResourceExhausted, "zlib: out of memory"};
    const std::unique_ptr<z_stream, decltype(&inflateEnd)> guard(&stream, &inflateEnd);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(input.data()));
    stream.avail_in = static_cast<uInt>(input.size());
    stream.next_out = reinterpret_cast<Bytef*>(output.data());
    stream.avail_out = static_cast<uInt>(output.size());
    while (true) {
        const int status = inflate(&stream, Z_NO_FLUSH);
        if (status == Z_STREAM_END) {
            if (stream.avail_in == 0) break;
            if (inflateReset(&stream) != Z_OK) return damaged("zlib");  // the next member
            continue;
        }
        if (status == Z_OK && stream.avail_in > 0 && stream.avail_out > 0) continue;
        if (stream.avail_out == 0 && (status == Z_OK || status == Z_BUF_ERROR))
            return wrong_size(output.size(), "more");
        return damaged(stream.msg ? stream.msg : "it ends early");
    }
    if (stream.avail_out != 0) return wrong_size(output.size(), "less");
    return {};
}

Result<void> decompress_brotli(std::span<const std::byte> input, std::span<std::byte> output) {
    const std::unique_ptr<BrotliDecoderState, decltype(&BrotliDecoderDestroyInstance)> state(
        BrotliDecoderCreateInstance(nullptr, nullptr, nullptr), &BrotliDecoderDestroyInstance);
    if (!state) return Error{Code::kResourceExhausted, "brotli: out of memory"};
    std::size_t in_left = input.size();
    const auto* in = reinterpret_cast<const std::uint8_t*>(input.data());
    std::size_t out_left = output.size();
    auto* out = reinterpret_cast<std::uint8_t*>(output.data());
    switch (BrotliDecoderDecompressStream(state.get(), &in_left, &in, &out_left, &out, nullptr)) {
        case BROTLI_DECODER_RESULT_SUCCESS: break;
        case BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT: return wrong_size(output.size(), "more");
        case BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT: return damaged("it ends early");
        default: return damaged(BrotliDecoderErrorString(BrotliDecoderGetErrorCode(state.get())));
    }
    if (in_left > 0) return damaged("something follows its end");
    if (out_left > 0) return wrong_size(output.size(), "less");
    return {};
}

Result<void> decompress_bzip2(std::span<const std::byte> input, std::span<std::byte> output) {
    std::size_t in_at = 0;
    std::size_t out_at = 0;
    // Several streams may follow one another, as bzip2's own tools write them.
    while (in_at < input.size()) {
        bz_stream stream{};
        if (BZ2_bzDecompressInit(&stream, 0, 0) != BZ_OK)
            return Error{Code::kResourceExhausted, "bzip2: out of memory"};
        const std::unique_ptr<bz_stream, decltype(&BZ2_bzDecompressEnd)> guard(
            &stream, &BZ2_bzDecompressEnd);
        stream.next_in = reinterpret_cast<char*>(const_cast<std::byte*>(input.data() + in_at));
        stream.avail_in = static_cast<unsigned>(input.size() - in_at);
        stream.next_out = reinterpret_cast<char*>(output.data() + out_at);
        stream.avail_out = static_cast<unsigned>(output.size() - out_at);
        int status = BZ_OK;
        while (status == BZ_OK && stream.avail_in > 0 && stream.avail_out > 0)
            status = BZ2_bzDecompress(&stream);
        if (status == BZ_OK) status = BZ2_bzDecompress(&stream);  // an end that needs no more room
        in_at = input.size() - stream.avail_in;
        out_at = output.size() - stream.avail_out;
        if (status == BZ_STREAM_END) continue;
        if (status == BZ_OK && stream.avail_out == 0) return wrong_size(output.size(), "more");
        return damaged(status == BZ_OK ? "it ends early" : "bzip2");
    }
    if (out_at != output.size()) return wrong_size(output.size(), "less");
    return {};
}

Result<void> decompress_snappy(std::span<const std::byte> input, std::span<std::byte> output) {
    const auto* in = reinterpret_cast<const char*>(input.data());
    std::size_t size = 0;
    if (snappy_uncompressed_length(in, input.size(), &size) != SNAPPY_OK) return damaged("snappy");
    if (size != output.size())
        return wrong_size(output.size(), size > output.size() ? "more" : "less");
    if (snappy_uncompress(in, input.size(), reinterpret_cast<char*>(output.data()), &size) !=
        SNAPPY_OK)
        return damaged("snappy");
    return {};
}

Result<void> decompress_into(CompressionKind kind, std::span<const std::byte> input,
                             std::span<std::byte> output) {
    switch (kind) {
        case CompressionKind::kZstd: return decompress_zstd(input, output);
        case CompressionKind::kGzip: return decompress_gzip(input, output);
        case CompressionKind::kBrotli: return decompress_brotli(input, output);
        case CompressionKind::kBzip2: return decompress_bzip2(input, output);
        case CompressionKind::kSnappy: return decompress_snappy(input, output);
    }
    return Error{Code::kInternalError, "there is no such compression"};
}

/// What mosaicml-streaming takes each name to mean.
struct CompressionName {
    std::string_view name;
    CompressionKind kind;
    int level_min;
    int level_max;
    int level_default;
};
constexpr std::array kCompressionNames = {
    CompressionName{"br", CompressionKind::kBrotli, 0, 11, 11},
    CompressionName{"bz2", CompressionKind::kBzip2, 1, 9, 9},
    CompressionName{"gz", CompressionKind::kGzip, 0, 9, 9},
    CompressionName{"snappy", CompressionKind::kSnappy, 0, 0, 0},
    CompressionName{"zstd", CompressionKind::kZstd, 1, 22, 3},
};

}  // namespace

std::string_view Compression::extension() const {
    return std::ranges::find(kCompressionNames, kind, &CompressionName::kind)->name;
}

Result<Compression> parse_compression(std::string_view text) {
    const std::size_t colon = text.find(':');
    const auto known =
        std::ranges::find(kCompressionNames, text.substr(0, colon), &CompressionName::name);
    if (known == kCompressionNames.end())
        return Error{Code::kInvalidParameterValue, "unknown compression '" + std::string(text) +
                                                       "'; known are br, bz2, gz, snappy and zstd"};
    Compression compression{known->kind, known->level_default};
    if (colon == std::string_view::npos) return compression;
    const std::string_view level = text.substr(colon + 1);
    const auto [end, error] =
        std::from_chars(level.data(), level.data() + level.size(), compression.level);
    const bool is_number = error == std::errc{} && end == level.data() + level.size();
    if (is_number && known->level_max > 0 && compression.level >= known->level_min &&
        compression.level <= known->level_max)
        return compression;
    if (known->level_max == 0)
        return Error{Code::kInvalidParameterValue,
                     "compression '" + std::string(text) + "': snappy has no levels"};
    return Error{Code::kInvalidParameterValue,
                 "the level of compression '" + std::string(text) + "' must lie in " +
                     std::to_string(known->level_min) + ".." + std::to_string(known->level_max)};
}

Result<std::string> compress(const Compression& compression, std::string_view data) {
    switch (compression.kind) {
        case CompressionKind::kZstd: return compress_zstd(compression.level, data);
        case CompressionKind::kGzip: return compress_gzip(compression.level, data);
        case CompressionKind::kBrotli: return compress_brotli(compression.level, data);
        case CompressionKind::kBzip2: return compress_bzip2(compression.level, data);
        case CompressionKind::kSnappy: return compress_snappy(data);
    }
    return Error{Code::kInternalError, "there is no such compression"};
}

Result<OwnedBytes> decompress(const Compression& compression, std::span<const std::byte> input,
                              std::size_t size) {
    if (size > std::numeric_limits<uInt>::max() || input.size() > std::numeric_limits<uInt>::max())
        return Error{Code::kDataLoss, "it is larger than a shard can be (4 GiB)"};
    OwnedBytes output;
    output.size = size;
    output.data.reset(new (std::nothrow) std::byte[std::max<std::size_t>(size, 1)]);
    if (!output.data)
        return Error{Code::kResourceExhausted,
                     "no memory for " + std::to_string(size) + " decompressed bytes"};
    const std::span<std::byte> target(output.data.get(), size);
    TUNE_TRY_VOID(decompress_into(compression.kind, input, target));
    return output;
}

}  // namespace tune::loader
