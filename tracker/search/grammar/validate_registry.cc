// MLflow splits registry identifiers at the first dot even inside quotes, and its sentences differ
// from those of runs; that is why these functions do not share identifier.cc.

#include "tracker/search/grammar/validate_registry.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "base/text/number_text.h"
#include "base/text/python_text.h"
#include "tracker/search/grammar/identifier.h"
#include "tracker/search/grammar/validate_parts.h"

namespace tune::tracker::search {
namespace {

constexpr std::array<std::string_view, 1> kModelKeys = {"name"};
constexpr std::array<std::string_view, 4> kVersionKeys = {"name", "run_id", "source_path",
                                                          "version_number"};
constexpr std::array<std::string_view, 3> kModelOrderKeys = {"last_updated_timestamp", "name",
                                                             "timestamp"};
constexpr std::array<std::string_view, 4> kVersionOrderKeys = {
    "creation_timestamp", "last_updated_timestamp", "name", "version_number"};
constexpr std::string_view kVersionNumber = "version_number";

constexpr std::string_view kTagSet = "{'!=', '=', 'ILIKE', 'LIKE'}";

std::string set_of(std::span<const std::string_view> names) {
    std::string text = "{";
    for (const std::string_view name : names)
        text += (text.size() > 1 ? ", " : "") + python_repr(name);
    return text + "}";
}

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

struct Split {
    Entity entity = Entity::kAttribute;
    std::string_view key;
};

/// At the first dot, which quotes do not hide.
Result<Split> split(std::string_view text) {
    const std::size_t dot = text.find('.');
    if (dot == std::string_view::npos) return Split{Entity::kAttribute, text};
    const std::string_view entity = text.substr(0, dot);
    if (entity != "attribute" && entity != "tag" && entity != "tags")
        return invalid_parameter("Invalid entity type '" + shorten(entity) +
                                 "'. Valid entity types are ('attribute', 'tag', 'tags')");
    return Split{entity == "attribute" ? Entity::kAttribute : Entity::kTag, text.substr(dot + 1)};
}

Error invalid_key(std::string_view key, std::span<const std::string_view> valid) {
    return invalid_parameter("Invalid attribute key '" + shorten(key) +
                             "' specified. Valid keys are '" + set_of(valid) + "'");
}

Result<FilterValue> attribute_value_of(Subject subject, std::string_view key, const Token& token) {
    const bool is_model = subject == Subject::kRegisteredModels;
    if (is_text(token)) {
        TUNE_TRY(text, to_string_value(token));
        return FilterValue(std::move(text));
    }
    if (token.kind == TokenKind::kList) {
        const bool takes_list = key == "name" || key == "run_id";
        if (takes_list) return list_value(token);
        return invalid_parameter(std::string("Only ") +
                                 (is_model ? "['name']" : "['name', 'run_id']") +
                                 " attributes support comparison with a list of quoted string "
                                 "values.");
    }
    if (is_model || !is_number(token))
        return invalid_parameter(
            "Expected a quoted string value or a list of quoted string values for attributes. Got "
            "value " +
            shorten(token.text));
    if (key != kVersionNumber)
        return invalid_parameter(
            "Only the '{'creation_timestamp', 'last_updated_timestamp', 'version_number'}' "
            "attributes support comparison with numeric values.");
    return to_number(token);
}

/// A version's number, which may stand in quotes.
Result<FilterValue> version_value(const FilterValue& value, const Token& token) {
    const std::string start = "Invalid value for numeric attribute 'version_number': ";
    if (token.kind == TokenKind::kFloat)
        return invalid_parameter(start + number_text(to_double(token.text)));
    const auto* text = std::get_if<std::string>(&value);
    if (text == nullptr) return value;
    std::int64_t number = 0;
    const char* end = text->data() + text->size();
    const auto [stopped, error] = std::from_chars(text->data(), end, number);
    if (error != std::errc() || stopped != end)
        return invalid_parameter(start + python_repr(shorten(*text)));
    return FilterValue(number);
}

Result<Comparator> attribute_comparator(Subject subject, std::string_view key,
                                        const std::string& name) {
    if (subject == Subject::kModelVersions && key == kVersionNumber)
        return comparator_in(kNumericSet, name,
                             "Invalid comparator for attribute version_number: " + name);
    return comparator_in(kStringSet, name, "Invalid comparator for attribute: " + name);
}

}  // namespace

Result<Clause> validate_for_registry(Subject subject, const Comparison& comparison) {
    TUNE_TRY_VOID(require_name(comparison));
    if (!comparison.right)
        return invalid_parameter("Invalid comparison clause. Expected 3 tokens found 2");
    const bool is_model = subject == Subject::kRegisteredModels;
    const std::span<const std::string_view> keys =
        is_model ? std::span<const std::string_view>(kModelKeys) : kVersionKeys;
    TUNE_TRY(identifier, split(comparison.left.text));
    const bool is_attribute = identifier.entity == Entity::kAttribute;
    if (is_attribute && !is_one_of(keys, identifier.key)) return invalid_key(identifier.key, keys);
    Clause clause;
    clause.entity = identifier.entity;
    std::string_view key = identifier.key;
    strip_quotes(key, "'\"");
    strip_quotes(key, "`");
    clause.key = key;
    const std::string comparator = canonical_comparator(comparison.comparator);
    const Token& right = *comparison.right;
    TUNE_TRY(value, is_attribute ? attribute_value_of(subject, key, right)
                                 : text_value(Entity::kTag, right));
    clause.value = std::move(value);
    TUNE_TRY(parsed, is_attribute ? attribute_comparator(subject, key, comparator)
                                  : comparator_in(kTagSet, comparator,
                                                  "Invalid comparator for tag: " + comparator));
    clause.comparator = parsed;
    if (is_attribute && key == kVersionNumber) {
        TUNE_TRY(number, version_value(clause.value, right));
        clause.value = std::move(number);
    }
    TUNE_TRY_VOID(check_shape(clause, comparator));
    return clause;
}

Result<std::string> registry_order_key(Subject subject, std::string_view text) {
    if (subject == Subject::kRegisteredModels) {
        if (!is_one_of(kModelOrderKeys, text))
            return invalid_parameter("Invalid order by key '" + shorten(text) +
                                     "' specified. Valid keys are '{'name', 'timestamp'}'");
        return std::string(text == "timestamp" ? "last_updated_timestamp" : text);
    }
    TUNE_TRY(identifier, split(text));
    std::string_view key = identifier.key;
    strip_quotes(key, "'\"");
    strip_quotes(key, "`");
    if (is_one_of(kVersionOrderKeys, key)) return std::string(key);
    if (identifier.entity == Entity::kAttribute) return invalid_key(key, kVersionOrderKeys);
    return invalid_parameter("Invalid order by key '" + shorten(key) +
                             "' specified. Valid keys are " + set_of(kVersionOrderKeys));
}

}  // namespace tune::tracker::search
