#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tune::tracker {

/// What MLflow's file store keeps in a meta.yaml: scalars by name, and maps of scalars by name.
/// Null is "not there"; anything deeper is left out.
struct FlatYaml {
    std::map<std::string, std::string, std::less<>> scalars;
    std::map<std::string, std::map<std::string, std::string>, std::less<>> maps;

    /// Empty when it is not there.
    [[nodiscard]] std::string text(std::string_view name) const;
    [[nodiscard]] std::optional<std::string> optional_text(std::string_view name) const;
    /// Nothing when it is not there or no integer.
    [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name) const;
};

/// Through yaml-cpp's events: nothing is expanded, so a "billion laughs" file is refused at its
/// first anchor. Errors: kDataLoss with line and column.
[[nodiscard]] Result<FlatYaml> read_flat_yaml(const std::string& text);

}  // namespace tune::tracker
