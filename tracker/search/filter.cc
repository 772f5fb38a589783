#include "tracker/search/filter.h"

#include "tracker/search/grammar/comparison.h"
#include "tracker/search/grammar/condition.h"
#include "tracker/search/grammar/identifier.h"
#include "tracker/search/grammar/validate.h"

namespace tune::tracker::search {
namespace {

/// Clauses joined by AND, as MLflow reads them.
Result<Condition> parse_conjunction(Subject subject, std::string_view text) {
    Condition all;
    TUNE_TRY(comparisons, take_comparisons(subject, text));
    for (const Comparison& comparison : comparisons) {
        TUNE_TRY(clause, validate(subject, comparison));
        all.parts.push_back({Condition::Kind::kClause, std::move(clause), {}});
    }
    return all;
}

Result<void> check_list_values(const Condition& condition) {
    std::size_t count = 0;
    for_each_clause(condition, [&count](const Clause& clause) {
        if (const auto* list = std::get_if<std::vector<std::string>>(&clause.value))
            count += list->size();
    });
    if (count <= kFilterListValuesMax) return {};
    return invalid_parameter("The lists of the filter hold " + std::to_string(count) +
                             " values; at most " + std::to_string(kFilterListValuesMax) +
                             " are supported.");
}

}  // namespace

Result<Condition> parse_filter(Subject subject, std::string_view text) {
    TUNE_TRY_VOID(check_statement(subject, text));
    TUNE_TRY(condition,
             is_boolean(text) ? parse_condition(subject, text) : parse_conjunction(subject, text));
    TUNE_TRY_VOID(check_list_values(condition));
    return condition;
}

}  // namespace tune::tracker::search
