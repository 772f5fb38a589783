#include "tracker/search/filter.h"

#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "tracker/search/comparison.h"
#include "tracker/search/identifier.h"
#include "tracker/search/python_text.h"
#include "tracker/search/value_list.h"

namespace tune::tracker::search {
namespace {

constexpr std::array<std::pair<std::string_view, Comparator>, 12> kComparators = {{
    {"=", Comparator::kEqual},
    {"!=", Comparator::kNotEqual},
    {"<", Comparator::kLess},
    {"<=", Comparator::kLessEqual},
    {">", Comparator::kGreater},
    {">=", Comparator::kGreaterEqual},
    {"LIKE", Comparator::kLike},
    {"ILIKE", Comparator::kIlike},
    {"IN", Comparator::kIn},
    {"NOT IN", Comparator::kNotIn},
    {"IS NULL", Comparator::kIsNull},
    {"IS NOT NULL", Comparator::kIsNotNull},
}};

constexpr std::string_view kNumericSet = "{'!=', '<', '<=', '=', '>', '>='}";
constexpr std::string_view kStringSet = "{'!=', '=', 'ILIKE', 'IN', 'LIKE', 'NOT IN'}";
constexpr std::string_view kNullableSet = "{'!=', '=', 'ILIKE', 'IS NOT NULL', 'IS NULL', 'LIKE'}";

/// The comparator of this name if it is one of the set (a text of quoted names).
Result<Comparator> comparator_in(std::string_view set, const std::string& name,
                                 const std::string& sentence) {
    const bool is_in_set = set.find("'" + name + "'") != std::string_view::npos;
    for (const auto& [candidate, comparator] : kComparators)
        if (is_in_set && candidate == name) return comparator;
    return invalid_parameter(sentence);
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

bool is_number(const Token& token) {
    return token.kind == TokenKind::kInteger || token.kind == TokenKind::kFloat;
}

double to_double(std::string_view text) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    static_cast<void>(end);
    // Out of range: from_chars leaves the value; infinity compares right, and 0 for too small ones.
    if (error == std::errc::result_out_of_range) {
        const bool is_tiny =
            text.find("e-") != std::string_view::npos || text.find("E-") != std::string_view::npos;
        value = is_tiny ? 0 : text.starts_with('-') ? -kInfinity : kInfinity;
    }
    return value;
}

FilterValue to_number(const Token& token) {
    std::int64_t integer = 0;
    const char* end = token.text.data() + token.text.size();
    const auto [stopped, error] = std::from_chars(token.text.data(), end, integer);
    if (token.kind == TokenKind::kInteger && error == std::errc() && stopped == end) return integer;
    return to_double(token.text);
}

Result<std::string> to_string_value(const Token& token) {
    std::string_view text = token.text;
    if (strip_quotes(text, "'\"")) return std::string(text);
    return invalid_parameter(
        "Parameter value is either not quoted or unidentified quote types used for string value " +
        shorten(text) + ". Use either single or double quotes.");
}

bool is_text(const Token& token) {
    return token.kind == TokenKind::kString || token.kind == TokenKind::kName;
}

Result<FilterValue> metric_value(const Token& token) {
    if (is_number(token)) return FilterValue(to_double(token.text));
    return invalid_parameter("Expected numeric value type for metric. Found " +
                             shorten(token.text));
}

Result<FilterValue> text_value(Entity entity, const Token& token) {
    if (!is_text(token))
        return invalid_parameter("Expected a quoted string value for " +
                                 std::string(entity_name(entity)) +
                                 " (e.g. 'my-value'). Got value " + shorten(token.text));
    TUNE_TRY(text, to_string_value(token));
    return FilterValue(std::move(text));
}

Result<FilterValue> list_value(const Token& token) {
    TUNE_TRY(list, parse_value_list(token.text));
    return FilterValue(std::move(list));
}

Result<FilterValue> attribute_value(const Attribute& attribute, std::string_view list_key,
                                    const Token& token) {
    if (attribute.is_numeric) {
        if (is_number(token)) return to_number(token);
        return invalid_parameter("Expected numeric value type for numeric attribute: " +
                                 std::string(attribute.name) + ". Found " + shorten(token.text));
    }
    if (is_text(token)) {
        TUNE_TRY(text, to_string_value(token));
        return FilterValue(std::move(text));
    }
    if (token.kind != TokenKind::kList)
        return invalid_parameter("Expected a quoted string value for attributes. Got value " +
                                 shorten(token.text));
    if (attribute.canonical != list_key)
        return invalid_parameter("Only ['" + std::string(list_key) +
                                 "'] attributes support comparison with a list of quoted string "
                                 "values.");
    return list_value(token);
}

Result<FilterValue> dataset_value(const Token& token) {
    if (token.kind == TokenKind::kList) return list_value(token);
    if (!is_text(token))
        return invalid_parameter(
            "Expected a quoted string value for dataset attributes. Got value " +
            shorten(token.text));
    TUNE_TRY(text, to_string_value(token));
    return FilterValue(std::move(text));
}

/// A list goes with IN and NOT IN only, and they with nothing else.
Result<void> check_shape(const Clause& clause, const std::string& comparator) {
    const bool is_list = std::holds_alternative<std::vector<std::string>>(clause.value);
    const bool wants_list =
        clause.comparator == Comparator::kIn || clause.comparator == Comparator::kNotIn;
    if (is_list != wants_list)
        return invalid_parameter("Invalid comparator '" + comparator + "' for " +
                                 (is_list ? "a list of values" : "a single value") + ".");
    const auto* text = std::get_if<std::string>(&clause.value);
    const bool is_pattern =
        clause.comparator == Comparator::kLike || clause.comparator == Comparator::kIlike;
    if (is_pattern && text != nullptr && text->size() > kLikePatternBytesMax)
        return invalid_parameter("The pattern of " + comparator + " is longer than " +
                                 std::to_string(kLikePatternBytesMax) + " bytes.");
    return {};
}

Result<void> require_name(const Comparison& comparison) {
    if (comparison.left.kind == TokenKind::kName) return {};
    return invalid_parameter("Invalid comparison clause. Expected 'Identifier' found '" +
                             shorten(comparison.left.text) + "'");
}

Result<Clause> judge_for_runs(const Comparison& comparison) {
    TUNE_TRY_VOID(require_name(comparison));
    const auto attributes = searchable_attributes(Subject::kRuns);
    TUNE_TRY(identifier, parse_identifier(Subject::kRuns, comparison.left.text, attributes));
    const Attribute* attribute = identifier.entity == Entity::kAttribute
                                     ? find_attribute(attributes, identifier.key)
                                     : nullptr;
    Clause clause{identifier.entity, identifier.key, Comparator::kEqual, {}};
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

Result<Clause> judge_for_experiments(const Comparison& comparison) {
    TUNE_TRY_VOID(require_name(comparison));
    const auto attributes = searchable_attributes(Subject::kExperiments);
    TUNE_TRY(identifier, parse_identifier(Subject::kExperiments, comparison.left.text, attributes));
    const Attribute* attribute = identifier.entity == Entity::kAttribute
                                     ? find_attribute(attributes, identifier.key)
                                     : nullptr;
    Clause clause{identifier.entity, identifier.key, Comparator::kEqual, {}};
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
                                 python_float(*real) + "'");
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

Result<Clause> judge_for_models(const Comparison& comparison) {
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
    Clause clause{identifier.entity, identifier.key, Comparator::kEqual, {}};
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

Result<std::vector<Clause>> parse_filter(Subject subject, std::string_view text) {
    std::vector<Clause> clauses;
    TUNE_TRY_VOID(check_statement(subject, text));
    TUNE_TRY(comparisons, take_comparisons(subject, text));
    std::size_t list_values = 0;
    for (const Comparison& comparison : comparisons) {
        TUNE_TRY(clause, subject == Subject::kRuns          ? judge_for_runs(comparison)
                         : subject == Subject::kExperiments ? judge_for_experiments(comparison)
                                                            : judge_for_models(comparison));
        if (const auto* list = std::get_if<std::vector<std::string>>(&clause.value))
            list_values += list->size();
        clauses.push_back(std::move(clause));
    }
    if (list_values > kFilterListValuesMax)
        return invalid_parameter("The lists of the filter hold " + std::to_string(list_values) +
                                 " values; at most " + std::to_string(kFilterListValuesMax) +
                                 " are supported.");
    return clauses;
}

}  // namespace tune::tracker::search
