// zstd and gzip behind one interface. Decompression writes into memory of the size that the index
// states and never beyond it, so a hostile file cannot make it allocate; a result of any other size
// is an error. Several frames or members in one file are read as their concatenation, as the tools
// that write them define it.

#include "loader/format/compression.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
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

}  // namespace

std::string_view Compression::extension() const {
    return kind == CompressionKind::kZstd ? "zstd" : "gz";
}

Result<Compression> parse_compression(std::string_view text) {
    const std::size_t colon = text.find(':');
    const std::string_view name = text.substr(0, colon);
    if (name == "br" || name == "bz2" || name == "snappy")
        return Error{Code::kNotImplemented,
                     "compression '" + std::string(name) + "' is not supported; use zstd or gz"};
    if (name != "zstd" && name != "gz")
        return Error{Code::kInvalidParameterValue,
                     "unknown compression '" + std::string(text) + "'; known are zstd and gz"};
    const bool is_zstd = name == "zstd";
    Compression compression{is_zstd ? CompressionKind::kZstd : CompressionKind::kGzip,
                            is_zstd ? 3 : 9};
    if (colon == std::string_view::npos) return compression;
    const std::string_view level = text.substr(colon + 1);
    const auto [end, error] =
        std::from_chars(level.data(), level.data() + level.size(), compression.level);
    const int lowest = is_zstd ? 1 : 0;
    const int highest = is_zstd ? 22 : 9;
    if (error != std::errc{} || end != level.data() + level.size() || compression.level < lowest ||
        compression.level > highest)
        return Error{Code::kInvalidParameterValue,
                     "the level of compression '" + std::string(text) + "' must lie in " +
                         std::to_string(lowest) + ".." + std::to_string(highest)};
    return compression;
}

Result<std::string> compress(const Compression& compression, std::string_view data) {
    return compression.kind == CompressionKind::kZstd ? compress_zstd(compression.level, data)
                                                      : compress_gzip(compression.level, data);
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
    TUNE_TRY_VOID(compression.kind == CompressionKind::kZstd ? decompress_zstd(input, target)
                                                             : decompress_gzip(input, target));
    return output;
}

}  // namespace tune::loader
