#include "tracker/http/protocol/content_coding.h"

#include <zlib.h>

#include <algorithm>

#include "base/check.h"
#include "base/text/text.h"

namespace tune::tracker {
namespace {

constexpr int kGzipWindowBits = 15 + 16;
constexpr int kAnyHeaderWindowBits = 15 + 32;
constexpr int kMemoryLevel = 8;
constexpr std::string_view kBlanks = " \t";

Bytef* writable(std::string_view text) {
    return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));  // zlib reads it only
}

bool is_zero_quality(std::string_view parameters) {
    const std::size_t at = parameters.find("q=0");
    if (at == std::string_view::npos) return false;
    const std::string_view rest = trimmed(parameters.substr(at + 3), kBlanks);
    return rest.find_first_not_of(".0") == std::string_view::npos;
}

}  // namespace

bool accepts_gzip(std::string_view accept_encoding) {
    while (!accept_encoding.empty()) {
        const std::size_t comma = accept_encoding.find(',');
        std::string_view item = trimmed(accept_encoding.substr(0, comma), kBlanks);
        accept_encoding = comma == std::string_view::npos ? std::string_view{}
                                                          : accept_encoding.substr(comma + 1);
        const std::size_t semicolon = item.find(';');
        if (trimmed(item.substr(0, semicolon), kBlanks) != "gzip") continue;
        return semicolon == std::string_view::npos || !is_zero_quality(item.substr(semicolon + 1));
    }
    return false;
}

std::string gzip(std::string_view text) {
    z_stream stream{};
    TUNE_CHECK(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindowBits, kMemoryLevel,
                            Z_DEFAULT_STRATEGY) == Z_OK,
               "zlib is out of memory");
    std::string out(deflateBound(&stream, text.size()), '\0');
    stream.next_in = writable(text);
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = writable(out);
    stream.avail_out = static_cast<uInt>(out.size());
    const int status = deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    TUNE_CHECK(status == Z_STREAM_END, "deflateBound was too small");
    return out;
}

Result<std::string> gunzip(std::string_view data, std::size_t bytes_max, const MayHold& may_hold) {
    z_stream stream{};
    TUNE_CHECK(inflateInit2(&stream, kAnyHeaderWindowBits) == Z_OK, "zlib is out of memory");
    std::string out;
    stream.next_in = writable(data);
    stream.avail_in = static_cast<uInt>(data.size());
    int status = Z_OK;
    bool has_room = true;
    while (status == Z_OK && out.size() <= bytes_max) {
        const std::size_t begin = out.size();
        const std::size_t size =
            std::min(bytes_max + 1, std::max<std::size_t>(begin * 2, data.size() * 4 + 64));
        has_room = !may_hold || may_hold(size);
        if (!has_room) break;
        out.resize(size);
        stream.next_out = writable(out) + begin;
        stream.avail_out = static_cast<uInt>(out.size() - begin);
        status = inflate(&stream, Z_NO_FLUSH);
        out.resize(out.size() - stream.avail_out);
    }
    inflateEnd(&stream);
    if (!has_room)
        return Error{Code::kRequestLimitExceeded,
                     "The server is holding as many large requests as it can. Try again later."};
    if (out.size() > bytes_max)
        return Error{Code::kRequestEntityTooLarge, "The request body unfolds to more than " +
                                                       std::to_string(bytes_max) + " bytes."};
    if (status != Z_STREAM_END)
        return Error{Code::kBadRequest, "The request body is not a whole gzip stream."};
    return out;
}

}  // namespace tune::tracker
