#pragma once
// What the validation of all subjects shares: from the tokens of a comparison to a comparator and a
// value, with MLflow's sentences. validate.cc and its neighbours are the only users.

#include <string>
#include <string_view>

#include "base/result.h"
#include "tracker/search/filter.h"
#include "tracker/search/grammar/comparison.h"
#include "tracker/search/grammar/identifier.h"

namespace tune::tracker::search {

inline constexpr std::string_view kNumericSet = "{'!=', '<', '<=', '=', '>', '>='}";
inline constexpr std::string_view kStringSet = "{'!=', '=', 'ILIKE', 'IN', 'LIKE', 'NOT IN'}";
inline constexpr std::string_view kNullableSet =
    "{'!=', '=', 'ILIKE', 'IS NOT NULL', 'IS NULL', 'LIKE'}";

/// The comparator of this name if it is one of the set (a text of quoted names); else an error with
/// `sentence`.
[[nodiscard]] Result<Comparator> comparator_in(std::string_view set, const std::string& name,
                                               const std::string& sentence);

[[nodiscard]] bool is_number(const Token& token);
[[nodiscard]] bool is_text(const Token& token);
/// Out of range: infinity, or 0.
[[nodiscard]] double to_double(std::string_view text);
/// An integer when it is written as one and fits, else a double. REQUIRES: is_number.
[[nodiscard]] FilterValue to_number(const Token& token);
/// The text inside of the quotes.
[[nodiscard]] Result<std::string> to_string_value(const Token& token);

[[nodiscard]] Result<FilterValue> metric_value(const Token& token);
/// A quoted string for a param or tag.
[[nodiscard]] Result<FilterValue> text_value(Entity entity, const Token& token);
[[nodiscard]] Result<FilterValue> list_value(const Token& token);
/// `list_key`: the only attribute that is compared with lists.
[[nodiscard]] Result<FilterValue> attribute_value(const Attribute& attribute,
                                                  std::string_view list_key, const Token& token);
[[nodiscard]] Result<FilterValue> dataset_value(const Token& token);

/// A list goes with IN and NOT IN only, and they with nothing else; patterns are bounded.
[[nodiscard]] Result<void> check_shape(const Clause& clause, const std::string& comparator);
/// The left side is a name.
[[nodiscard]] Result<void> require_name(const Comparison& comparison);

}  // namespace tune::tracker::search
