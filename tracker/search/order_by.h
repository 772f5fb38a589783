#pragma once
// The order_by grammar of MLflow's searches: `ident [ASC|DESC]` -> sort keys.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tracker/search/filter.h"

namespace tune::tracker::search {

/// More keys than any table has columns to sort by.
inline constexpr std::size_t kOrderKeysMax = 50;

/// Missing values sort last in both directions; NaN metrics after numbers, before missing.
struct OrderKey {
    Entity entity = Entity::kAttribute;
    std::string key;  // canonical, as in Clause
    bool is_ascending = true;
    Aggregate aggregate = Aggregate::kLatest;
    bool is_quoted = false;  // as in Clause
};

/// The sort keys of `texts`, without tie-breakers. Errors: kInvalidParameterValue with MLflow's
/// sentence; a key given twice is one too.
[[nodiscard]] Result<std::vector<OrderKey>> parse_order_by(Subject subject,
                                                           std::span<const std::string> texts);

}  // namespace tune::tracker::search
