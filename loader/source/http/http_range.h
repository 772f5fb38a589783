#pragma once
// A part of an object by one GET.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "loader/source/http/http_request.h"
#include "loader/source/object_source.h"

namespace tune::loader {

/// "bytes 5-9/100": the first one, and the whole (0: unknown).
struct ContentRange {
    std::uint64_t first = 0;
    std::uint64_t total = 0;
};
[[nodiscard]] ContentRange content_range(const HttpResponse& response);

/// The number that a header's text begins with; 0 without one.
[[nodiscard]] std::uint64_t leading_number(std::string_view text);

struct ObjectRange {
    const ObjectInfo& object;
    std::uint64_t offset = 0;
    /// The version that an answer tells of; empty when it tells of none.
    std::string (*version_of)(const HttpResponse&) = nullptr;
};

/// Fills `bytes` from `range.offset` on by what `request` names, with retries. The caller adds the
/// condition by which a server refuses to give bytes of another version (412); one that ignores it
/// shows by the answer's version. Errors: those of ObjectSource::read; kNotImplemented from a
/// server that sends whole files only, unless the whole one is asked for.
[[nodiscard]] Result<void> read_range(HttpClient& client, HttpRequest request,
                                      const ObjectRange& range, std::span<std::byte> bytes);

}  // namespace tune::loader
