// Reading and writing options by their rows.
//
// A row knows its type, range, default and member; one visitor per direction does the rest, so
// that reader and writer cannot differ in what they accept. Reading begins with a struct of
// defaults and sets what is given. Writing leaves out brief options that have their default, and
// what it writes reads back as the same struct.

#include "tuner/options/option_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text/number_text.h"
#include "tuner/options/duration.h"
#include "tuner/options/fields.h"
#include "tuner/space/error_text.h"
#include "tuner/space/space.h"

namespace tune::tuner {
namespace {

/// "a, b or c".
std::string or_list(const std::vector<std::string>& words) {
    std::string text;
    for (std::size_t i = 0; i < words.size(); ++i)
        text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
    return text;
}

bool is_word(const Option& option, const Node& node) {
    return !option.word.empty() && node.type == Node::Type::kString && node.text == option.word;
}

/// Reads the value of one row. `node`: of the key, which is there.
struct Reader {
    const Option& option;
    const Fields& fields;
    const Node& node;
    void* into;

    Result<void> operator()(const IntegerType& type) const {
        std::int64_t value = 0;
        if (!is_word(option, node))
            TUNE_TRY_VOID(fields.integer(option.name, value, type.low, type.high));
        type.set(into, value);
        return {};
    }
    Result<void> operator()(const NumberType& type) const {
        if (is_word(option, node)) return {};
        if (!option.word.empty() && node.type == Node::Type::kString)
            return error_at(node.place, fields.path_of(option.name),
                            "expected " + option.word + " or a number" +
                                (option.word_meaning.empty() ? "" : ", " + option.word_meaning) +
                                ", found " + describe(node));
        double value = 0;
        TUNE_TRY_VOID(fields.number(option.name, value, type.low, type.high));
        type.set(into, value);
        return {};
    }
    Result<void> operator()(const ChoiceType& type) const {
        const auto found = std::find(type.names.begin(), type.names.end(), node.text);
        if (node.type != Node::Type::kString || found == type.names.end())
            return error_at(node.place, fields.path_of(option.name),
                            "expected " + or_list(type.names) + ", found " + describe(node));
        type.set(into, static_cast<std::size_t>(found - type.names.begin()));
        return {};
    }
    Result<void> operator()(const TextType& type) const {
        std::string value;
        TUNE_TRY_VOID(fields.text(option.name, value, type.bytes_max));
        if (type.rule.holds && !type.rule.holds(value))
            return error_at(node.place, fields.path_of(option.name),
                            "expected " + type.rule.expected + ", found " + describe(node));
        type.set(into, std::move(value));
        return {};
    }
    Result<void> operator()(const DurationType& type) const {
        std::int64_t duration_ms = 0;
        TUNE_TRY_VOID(fields.duration(option.name, duration_ms));
        if (duration_ms < type.low_ms)
            return error_at(node.place, fields.path_of(option.name),
                            type.low_ms == 1
                                ? "expected a duration above 0"
                                : "expected " + duration_text(type.low_ms) + " or more");
        type.set(into, duration_ms);
        return {};
    }
    Result<void> operator()(const NumbersType& type) const {
        const auto error = [&](const Node& at, const std::string& found) {
            return error_at(at.place, fields.path_of(option.name),
                            "expected a " + OptionTable::type_text(option) + " such as " +
                                type.example + ", found " + found);
        };
        if (node.type != Node::Type::kList) return error(node, describe(node));
        if (node.items.size() < type.count_low || node.items.size() > type.count_high)
            return error(node, "a list of " + std::to_string(node.items.size()));
        std::vector<double> values;
        for (const Node& item : node.items) {
            if (!item.is_number() || !(item.number >= type.low && item.number <= type.high))
                return error(item, describe(item));
            values.push_back(item.number);
        }
        type.set(into, std::move(values));
        return {};
    }
    Result<void> operator()(const CustomType&) const { return {}; }
};

/// The value as a study has it; null: it has none.
struct Writer {
    const Option& option;
    const void* from;

    Json operator()(const IntegerType& type) const {
        const std::optional<std::int64_t> value = type.get(from);
        if (!value) return nullptr;
        if (*value == 0 && !option.word.empty()) return option.word;
        return *value;
    }
    Json operator()(const NumberType& type) const {
        const std::optional<double> value = type.get(from);
        return value ? Json(*value) : Json();
    }
    Json operator()(const ChoiceType& type) const { return type.names[type.get(from)]; }
    Json operator()(const TextType& type) const {
        std::string text = type.get(from);
        return text.empty() ? Json() : Json(std::move(text));
    }
    Json operator()(const DurationType& type) const {
        const std::optional<std::int64_t> duration_ms = type.get(from);
        return duration_ms ? Json(duration_text(*duration_ms)) : Json();
    }
    Json operator()(const NumbersType& type) const { return type.get(from); }
    Json operator()(const CustomType& type) const {
        Json json = Json::object();
        if (type.write) type.write(from, json);
        return json.contains(option.name) ? json[option.name] : Json();
    }
};

Json value_of(const Option& option, const void* from) {
    return std::visit(Writer{option, from}, option.type);
}

std::string range_text(const std::string& low, const std::string& high) {
    return " from " + low + " to " + high;
}

/// Integers as they are, other numbers as Python writes them; bounds that only keep a number finite
/// say nothing to people.
std::string bound_text(double bound) {
    const auto whole = static_cast<std::int64_t>(std::clamp(bound, -1e15, 1e15));
    return static_cast<double>(whole) == bound ? std::to_string(whole) : number_text(bound);
}

std::string number_range_text(double low, double high) {
    constexpr double kFarAway = 1e100;
    if (low <= -kFarAway && high >= kFarAway) return "";
    if (high >= kFarAway) return " of at least " + bound_text(low);
    return range_text(bound_text(low), bound_text(high));
}

std::string integer_range_text(const IntegerType& type) {
    if (type.high >= kCountMax && type.low <= 1) return " of at least " + std::to_string(type.low);
    return range_text(std::to_string(type.low), std::to_string(type.high));
}

struct TypeText {
    const Option& option;

    std::string operator()(const IntegerType& type) const {
        return with_word("integer" + integer_range_text(type));
    }
    std::string operator()(const NumberType& type) const {
        return with_word("number" + number_range_text(type.low, type.high));
    }
    std::string operator()(const ChoiceType& type) const { return or_list(type.names); }
    std::string operator()(const TextType&) const { return "text"; }
    std::string operator()(const DurationType& type) const {
        if (type.low_ms == 0) return "duration";
        return type.low_ms == 1 ? "duration above 0"
                                : "duration of at least " + duration_text(type.low_ms);
    }
    std::string operator()(const NumbersType& type) const {
        return "list of " + std::to_string(type.count_low) + " to " +
               std::to_string(type.count_high) + " numbers" +
               number_range_text(type.low, type.high);
    }
    std::string operator()(const CustomType& type) const { return type.type; }

private:
    [[nodiscard]] std::string with_word(std::string text) const {
        return option.word.empty() ? text : option.word + " or " + text;
    }
};

struct ApiText {
    const Option& option;

    std::string operator()(const IntegerType&) const { return plain("integer"); }
    std::string operator()(const NumberType&) const { return plain("number"); }
    std::string operator()(const ChoiceType& type) const {
        std::string names;
        for (const std::string& name : type.names) names += (names.empty() ? "" : "|") + name;
        return "enum(" + names + ")";
    }
    std::string operator()(const TextType&) const { return "text"; }
    std::string operator()(const DurationType&) const { return "text"; }
    std::string operator()(const NumbersType&) const { return "list of number"; }
    std::string operator()(const CustomType& type) const { return type.api; }

private:
    [[nodiscard]] std::string plain(const std::string& type) const {
        if (option.word.empty()) return type;
        return "{json_schema: {anyOf: [{type: " + type + "}, {const: " + option.word + "}]}}";
    }
};

}  // namespace

Option& Option::or_word(std::string spelling, std::string meaning) {
    word = std::move(spelling);
    word_meaning = std::move(meaning);
    return *this;
}

Option& Option::must_be_given(std::string what) {
    required = std::move(what);
    return *this;
}

Option& Option::needed() {
    is_needed = true;
    return *this;
}

Option& Option::brief() {
    is_brief = true;
    return *this;
}

Option& Option::defaults_to(std::string text) {
    fallback = std::move(text);
    return *this;
}

Option& Option::matching(TextRule rule) {
    std::get<TextType>(type).rule = std::move(rule);
    return *this;
}

const Option* OptionTable::find(std::string_view name) const {
    const auto found = std::find_if(rows_.begin(), rows_.end(),
                                    [&](const Option& option) { return option.name == name; });
    return found == rows_.end() ? nullptr : &*found;
}

std::vector<std::string> OptionTable::names() const {
    std::vector<std::string> names;
    for (const Option& option : rows_) names.push_back(option.name);
    return names;
}

Result<void> OptionTable::check_given(const Node& node, std::string_view path) const {
    const bool is_map = node.type == Node::Type::kMap;
    for (const Option& option : rows_)
        if (!option.required.empty() && (!is_map || node.find(option.name) == nullptr))
            return error_at(node.place, path,
                            "'" + option.name + "' is missing: " + option.required);
    return {};
}

Result<void> OptionTable::read(const Fields& fields, void* options) const {
    for (const Option& option : rows_) {
        if (const auto* custom = std::get_if<CustomType>(&option.type)) {
            TUNE_TRY_VOID(custom->read(fields, options));
        } else if (const Node* node = fields.find(option.name)) {
            TUNE_TRY_VOID(std::visit(Reader{option, fields, *node, options}, option.type));
        }
    }
    return check_ ? check_(fields, options) : Result<void>();
}

void OptionTable::write(const void* options, Json& json) const {
    for (const Option& option : rows_) {
        Json value = value_of(option, options);
        if (value.is_null()) continue;
        if (option.is_brief && value == value_of(option, address(defaults_))) continue;
        json[option.name] = std::move(value);
    }
}

std::vector<std::string> OptionTable::required() const {
    std::vector<std::string> names;
    for (const Option& option : rows_)
        if (!option.required.empty() || option.is_needed) names.push_back(option.name);
    return names;
}

std::string OptionTable::type_text(const Option& option) {
    return std::visit(TypeText{option}, option.type);
}

std::string OptionTable::default_text(const Option& option) const {
    if (!option.fallback.empty()) return option.fallback;
    if (!option.required.empty() || option.is_needed) return "";
    const Json value = value_of(option, address(defaults_));
    if (value.is_null()) return option.word;
    return value.is_string() ? value.get<std::string>() : to_text(value);
}

std::string OptionTable::api_text(const Option& option) const {
    std::string text = std::visit(ApiText{option}, option.type);
    const auto* custom = std::get_if<CustomType>(&option.type);
    const bool is_always =
        custom != nullptr ? custom->is_always_written
                          : !option.is_brief && !value_of(option, address(defaults_)).is_null();
    return is_always && !text.starts_with('{') ? text + "!" : text;
}

}  // namespace tune::tuner
