#pragma once
// Where a trial of population based training comes from.

#include <cstdint>
#include <optional>

namespace tune::tuner {

/// A trial there is one member of the population for one interval of training. It continues the
/// checkpoint of its parent: of the member's own last trial, or of a better member's.
struct Origin {
    std::optional<std::uint64_t> parent = {};  // none: it starts from nothing
    int member = 0;                            // 0 .. population - 1
    int generation = 0;                        // how many trials lie before it in its lineage

    [[nodiscard]] bool operator==(const Origin&) const = default;
};

}  // namespace tune::tuner
