// The bytes of a connection through the request parser, and what the session asks of their headers.
// Property: a stream in pieces gives the requests that it gives in one piece.

#include <algorithm>
#include <vector>

#include "base/text/percent.h"
#include "tests/fuzz/fuzz.h"
#include "tracker/api/http/url.h"
#include "tracker/http/protocol/byte_range.h"
#include "tracker/http/protocol/content_coding.h"
#include "tracker/http/protocol/host_check.h"
#include "tracker/http/protocol/request_parser.h"

namespace tune::fuzz {
namespace {

using namespace tune::tracker;
using Progress = RequestParser::Progress;

constexpr std::size_t kHeaderMax = 4096;
constexpr std::size_t kBodyMax = 2048;

struct Seen {
    std::vector<std::string> requests;
    int fault = 0;
};

std::string summary_of(const Request& request) {
    std::string out(method_name(request.method));
    out += ' ' + request.path + ' ' + request.raw_path;
    for (const auto& [name, value] : request.query) out += "\n?" + name + "=" + value;
    for (const auto& [name, value] : request.headers) out += "\n" + name + ": " + value;
    return out;
}

/// Reads all requests of `stream`, which arrives in pieces of `piece` bytes.
Seen read_stream(std::string_view stream, std::size_t piece) {
    Seen seen;
    RequestParser parser(kHeaderMax);
    std::string pending;
    std::string body;
    for (;;) {
        std::size_t consumed = 0;
        const Progress progress = parser.feed(pending, consumed);
        FUZZ_CHECK(consumed <= pending.size());
        if (progress == Progress::kChunk) body += parser.chunk();
        pending.erase(0, consumed);
        if (progress == Progress::kHeader) {
            if (parser.content_length().value_or(0) > kBodyMax) return seen;
            parser.limit_body(kBodyMax);
        } else if (progress == Progress::kError) {
            FUZZ_CHECK(parser.error_status() >= 400 && !parser.error_text().empty());
            seen.fault = parser.error_status();
            return seen;
        } else if (progress == Progress::kDone) {
            FUZZ_CHECK(body.size() <= kBodyMax);
            seen.requests.push_back(summary_of(*parser.request()) + "\n\n" + body);
            body.clear();
            parser.reset();
        } else if (progress == Progress::kNeedMore) {
            if (stream.empty()) return seen;
            const std::size_t taken = std::min(piece, stream.size());
            pending.append(stream.substr(0, taken));
            stream.remove_prefix(taken);
        }
    }
}

void try_headers(std::string_view text) {
    static const HostCheck check("127.0.0.1", {"tune.example", "*.lab.example"},
                                 {"https://page.example"});
    std::string_view rest = text;
    const std::string_view first = take_line(rest);
    const std::string_view second = take_line(rest);
    const bool by_ip = check.host_allowed(first, "127.0.0.1");
    // A name that is not listed never passes, whatever surrounds it.
    if (by_ip) FUZZ_CHECK(first.find("evil.com") == std::string_view::npos);
    static_cast<void>(check.origin_allowed(first, second, rest));
    for (const std::uint64_t size : {0ull, 1ull, 1000ull, ~0ull >> 1}) {
        const ByteRange range = parse_byte_range(first, size);
        if (range.kind == ByteRange::Kind::kPart)
            FUZZ_CHECK(range.begin < range.end && range.end <= size);
    }
    static_cast<void>(etag_listed(first, "\"a1\""));
    static_cast<void>(accepts_gzip(first));
    constexpr std::size_t kUnpackedMax = 1 << 16;
    const Result<std::string> unpacked = gunzip(text, kUnpackedMax);
    if (unpacked) FUZZ_CHECK(unpacked->size() <= kUnpackedMax);
    const Result<std::string> again = gunzip(gzip(text), text.size() + 1);
    FUZZ_CHECK(again && *again == text);
    FUZZ_CHECK(percent_decode(text).size() <= text.size());
    static_cast<void>(parse_query(text));
    const std::string disposition = attachment_disposition(text);
    FUZZ_CHECK(std::none_of(disposition.begin(), disposition.end(), [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e;
    }));
}

}  // namespace
}  // namespace tune::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tune::fuzz;
    if (size == 0) return 0;
    const std::string_view text = text_of(data + 1, size - 1);
    const Seen whole = read_stream(text, text.size() + 1);
    const Seen pieces = read_stream(text, 1 + data[0] % 16);
    FUZZ_CHECK(whole.requests == pieces.requests);
    // Beast reads a head as far as it came, and from then on waits for its end: of a head that is
    // not there yet the fault is seen or not. And a version that ends too soon ("H 0") is one that
    // it waits for, unless bytes behind it are there already. Where one way waits, the session's
    // time-out ends the connection; both never take a stream for different requests or faults.
    if (whole.fault != 0 && pieces.fault != 0) FUZZ_CHECK(whole.fault == pieces.fault);
    try_headers(text);
    return 0;
}
