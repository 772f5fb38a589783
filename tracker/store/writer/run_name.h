#pragma once

#include <cstdint>
#include <string>

namespace tune::tracker {

/// "adjective-noun-number", at most 20 characters, as MLflow names runs and models without a name.
/// `state`: any seed; advanced.
[[nodiscard]] std::string generate_name(std::uint64_t& state);

}  // namespace tune::tracker
