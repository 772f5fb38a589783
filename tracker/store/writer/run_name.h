#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tune::tracker {

/// The tag that always has the run's name as its value.
inline constexpr std::string_view kRunNameTag = "mlflow.runName";

/// "adjective-noun-number", at most 20 characters, as MLflow names runs and models without a name.
/// `state`: any seed; advanced.
[[nodiscard]] std::string generate_name(std::uint64_t& state);

}  // namespace tune::tracker
