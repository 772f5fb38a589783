#pragma once
// From the located tree to a Space. Private to tuner/space.

#include <string>
#include <string_view>

#include "base/result.h"
#include "tuner/space/node.h"
#include "tuner/space/space.h"

namespace tune::tuner {

/// Reads the map of a study's `space`. `path` ("space") heads the paths in errors.
[[nodiscard]] Result<Space> read_space(const Node& space, std::string_view path);

/// Refuses keys that are not in `known`, naming the nearest one.
[[nodiscard]] Result<void> expect_keys(const Node& map, std::string_view path,
                                       const std::vector<std::string>& known);

}  // namespace tune::tuner
