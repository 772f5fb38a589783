#pragma once
// The bodies of our own routes for trials: as the tracker reads MLflow's, but a key that is not
// known is refused. MLflow's routes must pass over it; here it is a slip of the pen.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "tracker/api/http/message.h"

namespace tune::tuner {

/// `known`: the names in snake_case; their camelCase is read too, as everywhere. Errors:
/// kInvalidParameterValue: those of Message::read; a key that is not known, with the list of those
/// that are.
[[nodiscard]] Result<tracker::Message> read_known_body(
    const tracker::Request& request, std::initializer_list<std::string_view> known);

/// The whole number, where it is one of `least`..`most`; also of numbers that 64 bits with a sign
/// do not hold, which are never cut to fit. Nothing: it is something else.
[[nodiscard]] std::optional<std::int64_t> whole_within(const Json& value, std::int64_t least,
                                                       std::int64_t most);

}  // namespace tune::tuner
