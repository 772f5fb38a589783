#pragma once
// The keys of a parameter's specification: the reader takes these and no others, and the JSON
// Schema lists them.

#include <string_view>
#include <vector>

#include "tuner/space/space.h"

namespace tune::tuner {

struct SpecKey {
    std::string_view name;
    std::string_view schema;  // of the value, as JSON without braces
    std::string_view help;
};

/// `is_short_prior`: {normal: [0, 1], low: -5, high: 5}, which names no kind and is a float. In the
/// order of errors; the kind itself comes first.
[[nodiscard]] std::vector<SpecKey> spec_keys(Kind kind, bool is_short_prior);

}  // namespace tune::tuner
