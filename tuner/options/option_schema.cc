// The JSON Schema (draft 7) of options.

#include <nlohmann/json.hpp>

#include "tuner/options/option_table.h"

namespace tune::tuner {
namespace {

struct Schema {
    const Option& option;

    OrderedJson operator()(const IntegerType& type) const {
        return with_word({{"type", "integer"}, {"minimum", type.low}, {"maximum", type.high}});
    }
    OrderedJson operator()(const NumberType& type) const {
        return with_word({{"type", "number"}, {"minimum", type.low}, {"maximum", type.high}});
    }
    OrderedJson operator()(const ChoiceType& type) const { return {{"enum", type.names}}; }
    OrderedJson operator()(const TextType& type) const {
        OrderedJson schema = {{"type", "string"}, {"maxLength", type.bytes_max}};
        if (!type.rule.pattern.empty()) schema["pattern"] = type.rule.pattern;
        return schema;
    }
    OrderedJson operator()(const DurationType&) const {
        return {{"$ref", "#/definitions/duration"}};
    }
    OrderedJson operator()(const NumbersType& type) const {
        return {{"type", "array"},
                {"minItems", type.count_low},
                {"maxItems", type.count_high},
                {"items", {{"type", "number"}, {"minimum", type.low}, {"maximum", type.high}}}};
    }
    OrderedJson operator()(const CustomType& type) const { return OrderedJson::parse(type.schema); }

private:
    [[nodiscard]] OrderedJson with_word(OrderedJson schema) const {
        if (option.word.empty()) return schema;
        return {{"anyOf", OrderedJson::array({OrderedJson{{"const", option.word}}, schema})}};
    }
};

}  // namespace

void OptionTable::add_schema(OrderedJson& properties) const {
    Json defaults = Json::object();
    write(address(defaults_), defaults);
    for (const Option& option : rows_) {
        OrderedJson schema = std::visit(Schema{option}, option.type);
        if (!option.help.empty()) schema["description"] = option.help;
        const bool has_default =
            option.required.empty() && !option.is_needed && option.fallback.empty();
        if (has_default && defaults.contains(option.name))
            schema["default"] = OrderedJson(defaults[option.name]);
        properties[option.name] = std::move(schema);
    }
}

}  // namespace tune::tuner
