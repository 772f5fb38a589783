#pragma once
// MLflow's rules for names, versions, tags and aliases of the model registry
// (mlflow/utils/validation.py, 3.17.2). Errors are kInvalidParameterValue.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tracker/store/types.h"

namespace tune::tracker {

inline constexpr std::size_t kRegistryTagValueCharsMax = 100'000;
inline constexpr std::size_t kAliasCharsMax = 255;
/// MLflow's SQLite schema says 500 and does not hold to it. Sources are validated on the writer
/// thread, so they are not as long as a body.
inline constexpr std::size_t kModelSourceCharsMax = 4'096;

[[nodiscard]] Result<void> validate_registered_name(std::string_view name);
[[nodiscard]] Result<void> validate_registered_tag(const Tag& tag);
[[nodiscard]] Result<void> validate_version_tag(const Tag& tag);
[[nodiscard]] Result<void> validate_alias(std::string_view alias);
/// "latest" and "v1" mean versions already.
[[nodiscard]] Result<void> validate_alias_is_free(std::string_view alias);

/// A version as Python's int() reads it. `number` is -1 when no version can have it.
struct VersionNumber {
    std::int64_t number = -1;
    std::string text;  // as Python prints it
};
/// Errors: "Parameter 'version' must be an integer, got 'x'.".
[[nodiscard]] Result<VersionNumber> parse_version(std::string_view text);

}  // namespace tune::tracker
