#pragma once

namespace tune {

/// The version of tune.
inline constexpr const char* kVersion = "0.1.0";

/// The MLflow release whose REST behaviour the tracker follows; clients read it at `/version`.
inline constexpr const char* kMlflowVersion = "3.17.2";

}  // namespace tune
