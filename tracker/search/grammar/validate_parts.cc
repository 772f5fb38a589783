// Values out of a double's range do not fail: infinity and 0 compare as the number would. Texts
// must be quoted, numbers must not be, as in MLflow, whose sentences name what was found instead.

#include "tracker/search/grammar/validate_parts.h"

#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "tracker/search/grammar/value_list.h"

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

}  // namespace

Result<Comparator> comparator_in(std::string_view set, const std::string& name,
                                 const std::string& sentence) {
    const bool is_in_set = set.find("'" + name + "'") != std::string_view::npos;
    for (const auto& [candidate, comparator] : kComparators)
        if (is_in_set && candidate == name) return comparator;
    return invalid_parameter(sentence);
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

}  // namespace tune::tracker::search
