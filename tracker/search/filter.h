#pragma once
// The filter grammar of MLflow's searches: text -> clauses. MLflow 3.17.2 tokenises with sqlparse
// and judges the tokens; we read the same language with a hand-written scanner and answer with
// MLflow's sentences. Pure functions: no I/O, no recursion, bounded by kFilterBytesMax and
// kFilterClausesMax; any bytes are safe input.
//
//   filter := clause { AND clause } [AND]
//   clause := ident cmp value | ident [NOT] IN '(' str {, str} [,] ')' | ident IS [NOT] NULL
//   ident  := [entity '.'] key        (split at the first dot; key bare, "..." or `...`)

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace tune::tracker::search {

/// A filter of a person is below 1 kB; the longest of a program (IN with 1,000 run ids) is 36 kB.
inline constexpr std::size_t kFilterBytesMax = 256u << 10;
/// Each clause is a look-up in the query; SQLite's expression depth allows 1,000.
inline constexpr std::size_t kFilterClausesMax = 200;
/// Longest LIKE pattern: matching costs up to (value bytes) x (pattern bytes), and no value that
/// can be tagged is longer.
inline constexpr std::size_t kLikePatternBytesMax = 8'192;
/// Values of all IN lists together; SQLite binds at most 32,766 values.
inline constexpr std::size_t kFilterListValuesMax = 10'000;

enum class Entity { kAttribute, kMetric, kParam, kTag, kDataset };

enum class Comparator {
    kEqual,
    kNotEqual,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kLike,   // case-sensitive; % and _; no escape
    kIlike,  // case-insensitive
    kIn,
    kNotIn,
    kIsNull,
    kIsNotNull,
};

/// What is searched; decides entities, attributes and sentences. Another subject is another
/// function in filter.cc that judges a comparison.
enum class Subject { kRuns, kExperiments, kLoggedModels };

using FilterValue =
    std::variant<std::monostate, std::int64_t, double, std::string, std::vector<std::string>>;

/// One comparison; clauses are joined by AND. `key` of an attribute is its canonical name
/// ("start_time" for "created"). A run's name is filtered through its tag mlflow.runName, as in
/// MLflow.
struct Clause {
    Entity entity = Entity::kAttribute;
    std::string key;
    Comparator comparator = Comparator::kEqual;
    FilterValue value;
};

/// The clauses of `text` (none for an empty text). Errors: kInvalidParameterValue with MLflow's
/// sentence.
[[nodiscard]] Result<std::vector<Clause>> parse_filter(Subject subject, std::string_view text);

}  // namespace tune::tracker::search
