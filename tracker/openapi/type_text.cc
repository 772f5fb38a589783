// A recursive descent over one line of text. The direction (written, read as protobuf, as JSON,
// from a query) decides what else is allowed in place of a type, so one line describes both sides
// of a field.

#include "tracker/openapi/type_text.h"

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <vector>

namespace tune::openapi {
namespace {

constexpr const char* kIntegerText = "^-?[0-9]{1,18}$";
constexpr const char* kNumberText =
    R"(^(NaN|-?Infinity|-?[0-9]{1,15}(\.[0-9]{1,15})?([eE][+-]?[0-9]{1,2})?)$)";
constexpr const char* kBooleanText = "^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])$";

std::string_view trim(std::string_view text) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    return text;
}

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
    throw std::invalid_argument("type '" + std::string(text) + "': " + std::string(why));
}

struct Range {
    std::optional<std::int64_t> min;
    std::optional<std::int64_t> max;
};

std::optional<std::int64_t> read_bound(std::string_view text) {
    if (text.empty()) return std::nullopt;
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) refuse(text, "not a number");
    return value;
}

Range read_range(std::string_view text) {
    const std::size_t dots = text.find("..");
    if (dots == std::string_view::npos) refuse(text, "a range is a..b, a.. or ..b");
    return {read_bound(text.substr(0, dots)), read_bound(text.substr(dots + 2))};
}

/// "list(1..20) of x" with name "list" -> the range, and `text` behind the parenthesis.
Range take_range(std::string_view& text) {
    if (!text.starts_with('(')) return {};
    const std::size_t close = text.find(')');
    if (close == std::string_view::npos) refuse(text, "')' is missing");
    const Range range = read_range(text.substr(1, close - 1));
    text.remove_prefix(close + 1);
    return range;
}

void put_range(Schema& schema, const Range& range, const char* low, const char* high) {
    if (range.min) schema[low] = *range.min;
    if (range.max) schema[high] = *range.max;
}

bool is_read(Dialect dialect) {
    return dialect == Dialect::kProtobuf || dialect == Dialect::kStrict;
}

Schema types(std::vector<const char*> names) {
    if (names.size() == 1) return names.front();
    Schema list = Schema::array();
    for (const char* name : names) list.push_back(name);
    return list;
}

Schema integer_schema(const Range& range, Dialect dialect) {
    Schema schema;
    const bool is_lenient = dialect == Dialect::kProtobuf;
    schema["type"] = is_lenient ? types({"integer", "string"}) : types({"integer"});
    if (is_lenient) schema["pattern"] = kIntegerText;
    schema["format"] = "int64";
    if (is_read(dialect) || dialect == Dialect::kQuery) {
        schema["minimum"] = range.min.value_or(std::numeric_limits<std::int64_t>::min());
        schema["maximum"] = range.max.value_or(std::numeric_limits<std::int64_t>::max());
    } else {
        put_range(schema, range, "minimum", "maximum");
    }
    return schema;
}

Schema real_schema(Dialect dialect) {
    Schema schema;
    if (dialect == Dialect::kProtobuf) {
        schema["type"] = types({"number", "string"});
        schema["pattern"] = kNumberText;
        return schema;
    }
    schema["anyOf"] = Schema::array(
        {{{"type", "number"}}, {{"enum", Schema::array({"NaN", "Infinity", "-Infinity"})}}});
    return schema;
}

Schema boolean_schema(Dialect dialect) {
    Schema schema;
    if (dialect != Dialect::kProtobuf) return {{"type", "boolean"}};
    schema["type"] = types({"boolean", "string"});
    schema["pattern"] = kBooleanText;
    return schema;
}

Schema enum_schema(std::string_view names) {
    Schema list = Schema::array();
    while (!names.empty()) {
        const std::size_t bar = std::min(names.find('|'), names.size());
        list.push_back(std::string(trim(names.substr(0, bar))));
        names.remove_prefix(std::min(bar + 1, names.size()));
    }
    return {{"enum", std::move(list)}};
}

Schema read_type(std::string_view text, Dialect dialect);

Schema list_schema(std::string_view rest, Dialect dialect) {
    const Range range = take_range(rest);
    if (!rest.starts_with(" of ")) refuse(rest, "a list is 'list of TYPE'");
    Schema schema;
    schema["type"] = "array";
    schema["items"] = read_type(rest.substr(4), dialect);
    put_range(schema, range, "minItems", "maxItems");
    return schema;
}

Schema text_schema(std::string_view rest) {
    Schema schema{{"type", "string"}};
    put_range(schema, take_range(rest), "minLength", "maxLength");
    if (!rest.empty()) refuse(rest, "nothing may follow");
    return schema;
}

Schema read_type(std::string_view whole, Dialect dialect) {
    const std::string_view text = trim(whole);
    if (text.starts_with("nullable ")) {
        const Schema inner = read_type(text.substr(9), dialect);
        return {{"anyOf", Schema::array({inner, {{"type", "null"}}})}};
    }
    if (text.starts_with("list")) return list_schema(text.substr(4), dialect);
    if (text.starts_with("map of "))
        return {{"type", "object"}, {"additionalProperties", read_type(text.substr(7), dialect)}};
    if (text.starts_with("enum(") && text.ends_with(')'))
        return enum_schema(text.substr(5, text.size() - 6));
    if (text.starts_with("text")) return text_schema(text.substr(4));
    if (text.starts_with("integer")) {
        std::string_view rest = text.substr(7);
        return integer_schema(take_range(rest), dialect);
    }
    if (text == "number") return {{"type", "number"}};
    if (text == "real") return real_schema(dialect);
    if (text == "boolean") return boolean_schema(dialect);
    if (text == "any") return Schema::object();
    if (text == "object") return {{"type", "object"}};
    if (text == "binary") return {{"type", "string"}, {"format", "binary"}};
    if (!text.empty() && text.front() >= 'A' && text.front() <= 'Z')
        return {{"$ref", "#/components/schemas/" + std::string(text)}};
    refuse(whole, "unknown; see tracker/openapi/type_text.h");
}

/// A required text or list of MLflow's messages may not be empty.
void refuse_empty(Schema& schema) {
    const Schema type = schema.value("type", Schema());
    if (type == "string" && !schema.contains("minLength")) schema["minLength"] = 1;
    if (type == "array" && !schema.contains("minItems")) schema["minItems"] = 1;
}

}  // namespace

Schema optional_schema(Schema schema, Dialect dialect) {
    if (!is_read(dialect)) return schema;
    if (schema.contains("enum")) {
        schema["enum"].push_back(nullptr);
        return schema;
    }
    if (schema.empty()) return schema;
    if (!schema.contains("type")) return {{"anyOf", Schema::array({schema, {{"type", "null"}}})}};
    Schema list = schema["type"].is_array() ? schema["type"] : Schema::array({schema["type"]});
    const bool is_list_of_texts =
        list[0] == "array" && schema["items"].value("type", Schema()) == "string";
    if (dialect == Dialect::kProtobuf && is_list_of_texts) list.push_back("string");
    list.push_back("null");
    schema["type"] = std::move(list);
    return schema;
}

Field read_field(std::string_view text, Dialect dialect) {
    const std::size_t dashes = text.find(" -- ");
    std::string_view type = trim(text.substr(0, dashes));
    Field field;
    field.is_required = type.ends_with('!');
    if (field.is_required) type.remove_suffix(1);
    field.schema = read_type(type, dialect);
    if (field.is_required && (dialect == Dialect::kProtobuf || dialect == Dialect::kQuery))
        refuse_empty(field.schema);
    if (!field.is_required) field.schema = optional_schema(std::move(field.schema), dialect);
    if (dashes != std::string_view::npos)
        field.schema["description"] = std::string(trim(text.substr(dashes + 4)));
    return field;
}

}  // namespace tune::openapi
