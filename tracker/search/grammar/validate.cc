// Only here does a comparison get its meaning, and only here are MLflow's inconsistencies between
// subjects kept (missing quotes in sentences, numbers as text). A clause that leaves this file has
// a comparator and a value that fit its entity, so the compilers behind it check nothing.

#include "tracker/search/grammar/validate.h"

#include <charconv>

#include "base/text/number_text.h"
#include "base/text/python_text.h"
#include "tracker/search/grammar/identifier.h"
#include "tracker/search/grammar/validate_parts.h"
#include "tracker/search/grammar/validate_registry.h"

namespace tune::tracker::search {
namespace {

Clause clause_of(const Identifier& identifier) {
    Clause clause;
    clause.entity = identifier.entity;
    clause.key = identifier.key;
    clause.is_quoted = identifier.is_quoted;
    return clause;
}

Result<Comparator> run_comparator(Entity entity, bool is_numeric, const std::string& name) {
    // MLflow forgets a closing quote in some of these sentences; texts are kept as they are.
    const std::string start = "Invalid comparator '" + name + "' not one of '";
    switch (entity) {
        case Entity::kMetric:
            return comparator_in(kNumericSet, name, start + std::string(kNumericSet));
        case Entity::kParam:
            return comparator_in(kNullableSet, name, start + std::string(kNullableSet) + "'");
        case Entity::kTag:
            return comparator_in(kNullableSet, name, start + std::string(kNullableSet));
        case Entity::kDataset:
            return comparator_in(kStringSet, name, start + std::string(kStringSet));
        case Entity::kAttribute: break;
    }
    const std::string sentence = start + std::string(kStringSet);
    return is_numeric ? comparator_in(kNumericSet, name, sentence)
                      : comparator_in(kStringSet, name, sentence + "'");
}

Result<Clause> validate_for_runs(const Comparison& comparison) {
    TUNE_TRY_VOID(require_name(comparison));
    const auto attributes = searchable_attributes(Subject::kRuns);
    TUNE_TRY(identifier, parse_identifier(Subject::kRuns, comparison.left.text, attributes));
    const Attribute* attribute = identifier.entity == Entity::kAttribute
                                     ? find_attribute(attributes, identifier.key)
                                     : nullptr;
    Clause clause = clause_of(identifier);
    const std::string comparator = canonical_comparator(comparison.comparator);
    if (!comparison.right) {
        if (clause.entity != Entity::kTag && clause.entity != Entity::kParam)
            return invalid_parameter(
                "IS NULL / IS NOT NULL is only supported for tags and params, "
                "not for '" +
                std::string(entity_name(clause.entity)) + "' '" + clause.key + "'");
    } else {
        const Token& right = *comparison.right;
        TUNE_TRY(value, clause.entity == Entity::kMetric    ? metric_value(right)
                        : clause.entity == Entity::kDataset ? dataset_value(right)
                        : attribute != nullptr ? attribute_value(*attribute, "run_id", right)
                                               : text_value(clause.entity, right));
        clause.value = std::move(value);
    }
    const bool is_numeric = attribute != nullptr && attribute->is_numeric;
    TUNE_TRY(parsed, run_comparator(clause.entity, is_numeric, comparator));
    clause.comparator = parsed;
    TUNE_TRY_VOID(check_shape(clause, comparator));
    if (attribute != nullptr) clause.key = attribute->canonical;
    if (attribute != nullptr && clause.key == "run_name") {
        clause.entity = Entity::kTag;
        clause.key = "mlflow.runName";
    }
    return clause;
}

Result<void> check_experiment_ids(const FilterValue& value) {
    const auto check = [](const std::string& text) -> Result<void> {
        std::int64_t id = 0;
        const char* end = text.data() + text.size();
        const auto [stopped, error] = std::from_chars(text.data(), end, id);
        if (error == std::errc() && stopped == end && !text.empty()) return {};
        return invalid_parameter("Invalid experiment ID '" + text +
                                 "'. Experiment ID must be a valid integer.");
    };
    if (const auto* text = std::get_if<std::string>(&value)) return check(*text);
    for (const std::string& text : std::get<std::vector<std::string>>(value))
        TUNE_TRY_VOID(check(text));
    return {};
}

Result<Comparator> experiment_comparator(Entity entity, const Attribute* attribute,
                                         const std::string& name) {
    constexpr std::string_view kPlainSet = "{'=', '!=', 'LIKE', 'ILIKE'}";
    if (entity == Entity::kTag)
        return comparator_in(kNullableSet, name, "Invalid comparator for tag: " + name);
    if (attribute->canonical == "experiment_id")
        return comparator_in("{'=', '!=', 'IN', 'NOT IN'}", name,
                             "Invalid comparator for experiment_id: " + name);
    const std::string start = "Invalid comparator '" + name + "' not one of '";
    if (attribute->is_numeric)
        return comparator_in(kNumericSet, name, start + std::string(kStringSet));
    TUNE_TRY_VOID(comparator_in(kStringSet, name, start + std::string(kStringSet) + "'"));
    return comparator_in(kPlainSet, name, "Invalid comparator for string attribute: " + name);
}

Result<Clause> validate_for_experiments(const Comparison& comparison) {
    TUNE_TRY_VOID(require_name(comparison));
    const auto attributes = searchable_attributes(Subject::kExperiments);
    TUNE_TRY(identifier, parse_identifier(Subject::kExperiments, comparison.left.text, attributes));
    const Attribute* attribute = identifier.entity == Entity::kAttribute
                                     ? find_attribute(attributes, identifier.key)
                                     : nullptr;
    Clause clause = clause_of(identifier);
    const std::string comparator = canonical_comparator(comparison.comparator);
    if (!comparison.right) {
        if (attribute != nullptr)
            return invalid_parameter(
                "IS NULL / IS NOT NULL is only supported for tags, not for "
                "attribute '" +
                clause.key + "'");
    } else {
        TUNE_TRY(value, attribute != nullptr
                            ? attribute_value(*attribute, "experiment_id", *comparison.right)
                            : text_value(Entity::kTag, *comparison.right));
        clause.value = std::move(value);
    }
    TUNE_TRY(parsed, experiment_comparator(clause.entity, attribute, comparator));
    clause.comparator = parsed;
    if (const auto* real = std::get_if<double>(&clause.value))
        return invalid_parameter("Invalid value for numeric attribute '" + clause.key + "': '" +
                                 number_text(*real) + "'");
    TUNE_TRY_VOID(check_shape(clause, comparator));
    if (attribute != nullptr && attribute->canonical == "experiment_id")
        TUNE_TRY_VOID(check_experiment_ids(clause.value));
    return clause;
}

Result<FilterValue> model_value(bool is_numeric, const Clause& clause, const Token& token) {
    if (is_numeric && !is_number(token))
        return invalid_parameter("Expected numeric value type for " +
                                 std::string(entity_name(clause.entity)) + ". Found " +
                                 shorten(token.text));
    if (clause.entity == Entity::kMetric) return FilterValue(to_double(token.text));
    if (is_numeric) return to_number(token);
    if (token.kind == TokenKind::kList) return list_value(token);
    TUNE_TRY(text, to_string_value(token));
    return FilterValue(std::move(text));
}

Result<Clause> validate_for_models(const Comparison& comparison) {
    TUNE_TRY_VOID(require_name(comparison));
    const std::string comparator = canonical_comparator(comparison.comparator);
    if (!comparison.right)
        return invalid_parameter("Invalid comparison: " + shorten(comparison.left.text) + " " +
                                 comparator + ". Expected a comparison with 3 tokens.");
    const auto attributes = searchable_attributes(Subject::kLoggedModels);
    TUNE_TRY(identifier,
             parse_identifier(Subject::kLoggedModels, comparison.left.text, attributes));
    const Attribute* attribute = identifier.entity == Entity::kAttribute
                                     ? find_attribute(attributes, identifier.key)
                                     : nullptr;
    Clause clause = clause_of(identifier);
    const bool is_numeric =
        clause.entity == Entity::kMetric || (attribute != nullptr && attribute->is_numeric);
    const std::string_view set = is_numeric ? "('<', '<=', '>', '>=', '=', '!=')"
                                            : "('=', '!=', 'LIKE', 'ILIKE', 'IN', 'NOT IN')";
    const char* kind = attribute != nullptr               ? "attributes."
                       : clause.entity == Entity::kMetric ? "metrics."
                       : clause.entity == Entity::kParam  ? "params."
                                                          : "tags.";
    TUNE_TRY(parsed, comparator_in(set, comparator,
                                   "Invalid comparison operator for " + std::string(kind) +
                                       clause.key + ": " + python_repr(shorten(comparator)) +
                                       ". Expected one of " + std::string(set) + "."));
    clause.comparator = parsed;
    TUNE_TRY(value, model_value(is_numeric, clause, *comparison.right));
    clause.value = std::move(value);
    TUNE_TRY_VOID(check_shape(clause, comparator));
    if (attribute != nullptr) clause.key = attribute->canonical;
    return clause;
}

}  // namespace

Result<Clause> validate(Subject subject, const Comparison& comparison) {
    switch (subject) {
        case Subject::kRuns: return validate_for_runs(comparison);
        case Subject::kExperiments: return validate_for_experiments(comparison);
        case Subject::kRegisteredModels:
        case Subject::kModelVersions: return validate_for_registry(subject, comparison);
        case Subject::kLoggedModels: break;
    }
    return validate_for_models(comparison);
}

}  // namespace tune::tracker::search
