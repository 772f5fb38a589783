#pragma once
// The bodies of our own routes for trials: as the tracker reads MLflow's, but a key that is not
// known is refused. MLflow's routes must pass over it; here it is a slip of the pen.

#include <initializer_list>
#include <string_view>

#include "tracker/api/http/message.h"

namespace tune::tuner {

/// `known`: the names in snake_case; their camelCase is read too, as everywhere. Errors:
/// kInvalidParameterValue: those of Message::read; a key that is not known, with the list of those
/// that are.
[[nodiscard]] Result<tracker::Message> read_known_body(
    const tracker::Request& request, std::initializer_list<std::string_view> known);

}  // namespace tune::tuner
