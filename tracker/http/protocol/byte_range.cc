#include "tracker/http/protocol/byte_range.h"

#include <algorithm>
#include <optional>

#include "base/text/number_text.h"

namespace tune::tracker {
ByteRange parse_byte_range(std::string_view header, std::uint64_t size_bytes) {
    const ByteRange whole{ByteRange::Kind::kWhole, 0, size_bytes};
    constexpr std::string_view kUnit = "bytes=";
    if (!header.starts_with(kUnit)) return whole;
    header.remove_prefix(kUnit.size());
    const std::size_t dash = header.find('-');
    if (dash == std::string_view::npos || header.find(',') != std::string_view::npos) return whole;
    const std::string_view first = header.substr(0, dash);
    const std::string_view last = header.substr(dash + 1);
    const ByteRange unsatisfiable{ByteRange::Kind::kUnsatisfiable, 0, 0};
    if (first.empty()) {
        const auto count = number_from_text<std::uint64_t>(last);
        if (!count) return whole;
        if (*count == 0 || size_bytes == 0) return unsatisfiable;
        return {ByteRange::Kind::kPart, size_bytes - std::min(*count, size_bytes), size_bytes};
    }
    const auto begin = number_from_text<std::uint64_t>(first);
    const auto end = last.empty() ? std::optional<std::uint64_t>(UINT64_MAX)
                                  : number_from_text<std::uint64_t>(last);
    if (!begin || !end || *end < *begin) return whole;
    if (*begin >= size_bytes) return unsatisfiable;
    return {ByteRange::Kind::kPart, *begin, std::min(*end, size_bytes - 1) + 1};
}

bool etag_listed(std::string_view if_none_match, std::string_view etag) {
    if (etag.empty() || if_none_match.empty()) return false;
    if (if_none_match == "*") return true;
    return if_none_match.find(etag) != std::string_view::npos;
}

}  // namespace tune::tracker
