#pragma once
// Filters with OR, NOT and parentheses, which MLflow has not: text -> tree. Stricter than MLflow's
// own filters: every AND and OR stands between two conditions.

#include <string_view>

#include "base/result.h"
#include "tracker/search/filter.h"

namespace tune::tracker::search {

/// Whether `filter` has OR, NOT or a parenthesis where a condition may stand; without any it is a
/// filter of MLflow's kind.
[[nodiscard]] bool is_boolean(std::string_view filter);

/// The tree of a filter that is_boolean. Errors: kInvalidParameterValue naming the character (from
/// 1) where it goes wrong; those of validate().
[[nodiscard]] Result<Condition> parse_condition(Subject subject, std::string_view filter);

}  // namespace tune::tracker::search
