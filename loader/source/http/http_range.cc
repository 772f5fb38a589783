#include "loader/source/http/http_range.h"

#include <charconv>
#include <cstring>
#include <string_view>

namespace tune::loader {
namespace {

/// The body of one range, as it comes.
struct RangeTarget {
    std::span<std::byte> bytes;
    std::size_t filled = 0;
    std::optional<Error> error = {};
};

}  // namespace

std::uint64_t leading_number(std::string_view text) {
    std::uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

ContentRange content_range(const HttpResponse& response) {
    const std::string text = response.header("content-range");
    ContentRange range;
    if (!text.starts_with("bytes ")) return range;
    range.first = leading_number(std::string_view(text).substr(6));
    const std::size_t slash = text.find('/');
    if (slash != std::string::npos)
        range.total = leading_number(std::string_view(text).substr(slash + 1));
    return range;
}

Result<void> read_range(HttpClient& client, HttpRequest request, const ObjectRange& range,
                        std::span<std::byte> bytes) {
    if (bytes.empty()) return {};
    const std::string name =
        "'" + (request.name.empty() ? public_url(request.url) : request.name) + "'";
    const ObjectInfo& object = range.object;
    const bool is_whole = range.offset == 0 && bytes.size() == object.bytes;
    request.headers.push_back("Range: bytes=" + std::to_string(range.offset) + "-" +
                              std::to_string(range.offset + bytes.size() - 1));
    return with_retries(client.options(), [&]() -> std::optional<AttemptFailure> {
        RangeTarget target{bytes};
        request.accept = [&](const HttpResponse& answer) {
            const std::string version = range.version_of(answer);
            if (answer.status == 200 && !is_whole)
                target.error = Error{Code::kNotImplemented,
                                     name + " is sent whole only: its server does not read ranges"};
            else if (answer.status == 206 && content_range(answer).first != range.offset)
                target.error = Error{Code::kDataLoss, name +
                                                          " answered with another range than "
                                                          "the one that was asked for"};
            else if (!object.version.empty() && !version.empty() && version != object.version)
                target.error = Error{Code::kDataLoss, name + " was changed while it was read"};
            return !target.error;
        };
        request.body = [&](std::span<const std::byte> piece) {
            if (piece.size() > target.bytes.size() - target.filled) {
                target.error = Error{Code::kDataLoss, name + " is longer than it was stated to be"};
                return false;
            }
            std::memcpy(target.bytes.data() + target.filled, piece.data(), piece.size());
            target.filled += piece.size();
            return true;
        };
        HttpResponse response;
        if (std::optional<AttemptFailure> failure = client.send(request, response)) return failure;
        if (target.error) return AttemptFailure{*std::move(target.error)};
        if (target.filled == bytes.size()) return {};
        // The server itself says that this is all: the object is shorter.
        return AttemptFailure{
            {Code::kDataLoss,
             name + " ends at byte " + std::to_string(range.offset + target.filled) + ", " +
                 std::to_string(bytes.size() - target.filled) + " bytes too early"}};
    });
}

}  // namespace tune::loader
