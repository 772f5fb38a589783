#pragma once
// The filter grammar of MLflow's searches and more: text -> a tree of clauses. MLflow 3.17.2
// tokenises with sqlparse and validates the tokens; we read the same language with a hand-written
// scanner and answer with MLflow's sentences. Pure functions: no I/O, recursion no deeper than
// kFilterDepthMax, bounded by kFilterBytesMax and kFilterClausesMax; any bytes are safe input.
//
//   filter := clause { [AND] clause } [AND]        MLflow's: joined by AND, which may be left out
//           | either                               with OR, NOT or parentheses: ours
//   either := both { OR both }
//   both   := one { AND one }
//   one    := NOT one | '(' either ')' | clause
//   clause := ident cmp value | ident [NOT] IN '(' str {, str} [,] ')' | ident IS [NOT] NULL
//   ident  := [entity '.'] key        (split at the first dot; key bare, "..." or `...`)
//
// A clause on something that is missing is false, so NOT of it is true.

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
/// Levels of parentheses and NOT. A person writes two; SQLite's parser has a stack of 100.
inline constexpr int kFilterDepthMax = 16;
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
/// function that validates a comparison (grammar/validate.h).
enum class Subject { kRuns, kExperiments, kLoggedModels, kRegisteredModels, kModelVersions };

using FilterValue =
    std::variant<std::monostate, std::int64_t, double, std::string, std::vector<std::string>>;

/// Which number of a metric is meant. Only searches of runs know more than the latest.
enum class Aggregate { kLatest, kMin, kMax, kBest };

/// One comparison. `key` of an attribute is its canonical name
/// ("start_time" for "created"). A run's name is filtered through its tag mlflow.runName, as in
/// MLflow.
struct Clause {
    Entity entity = Entity::kAttribute;
    std::string key;
    Comparator comparator = Comparator::kEqual;
    FilterValue value;
    Aggregate aggregate = Aggregate::kLatest;
    /// The key stood in quotes: it is a literal name, whatever it ends with.
    bool is_quoted = false;
};

/// A filter as a tree: a clause, or AND or OR of parts, or NOT of one part. An AND without parts is
/// true.
struct Condition {
    enum class Kind { kClause, kAnd, kOr, kNot };
    Kind kind = Kind::kAnd;
    Clause clause = {};
    std::vector<Condition> parts = {};
};

/// The tree of `text`; an empty AND for an empty text; AND in AND and OR in OR are joined. Errors:
/// kInvalidParameterValue with MLflow's sentence; for what MLflow has not, one that names the
/// character.
[[nodiscard]] Result<Condition> parse_filter(Subject subject, std::string_view text);

/// Calls `visit` with each clause, in the order of the text. `Tree` is Condition or const.
template <class Tree, class Visit>
void for_each_clause(Tree& condition, const Visit& visit) {
    if (condition.kind == Condition::Kind::kClause) visit(condition.clause);
    for (auto& part : condition.parts) for_each_clause(part, visit);
}

}  // namespace tune::tracker::search
