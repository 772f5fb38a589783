#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tracker/sqlite/connection.h"

namespace tune::tracker {

/// The recorded answer of a request that was made once (KeyedCommand).
struct KnownAnswer {
    std::string fingerprint;
    std::string text;
};

/// Nothing where the key is unknown or its answer older than kAnswerKeptMs. Cost: one look-up.
[[nodiscard]] Result<std::optional<KnownAnswer>> find_answer(sqlite::Connection& connection,
                                                             std::string_view key,
                                                             std::int64_t now_ms);

/// What the key means for a request with this fingerprint: the answer's text, or nothing where the
/// key is free. Errors: kInvalidParameterValue when it was used for another request.
[[nodiscard]] Result<std::optional<std::string>> answer_for(std::string_view key,
                                                            std::string_view fingerprint,
                                                            std::optional<KnownAnswer> known);

}  // namespace tune::tracker
