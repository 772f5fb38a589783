// Both directions of Optuna's JSON of distributions (name and attributes), for the classes of all
// versions since 2. Reading checks each attribute, since the file may come from anywhere; writing
// keeps to what Optuna 5 would write for the same parameter.

#include "tuner/interop/optuna/distribution.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tune::tuner {
namespace {

Json optuna_choice(const Json& value) {
    return value.is_structured() ? Json(to_text(value)) : value;
}

bool read_flag(const Json& attributes, const char* name) {
    const auto found = attributes.find(name);
    return found != attributes.end() && found->is_boolean() && found->get<bool>();
}

/// Nothing: it is missing, null or no number.
std::optional<double> read_number(const Json& attributes, const char* name) {
    const auto found = attributes.find(name);
    if (found == attributes.end() || !found->is_number()) return std::nullopt;
    return found->get<double>();
}

Error not_known(const std::string& name, std::string_view text) {
    return {Code::kInvalidParameterValue,
            "the distribution of '" + name + "' is not known: " + std::string(text.substr(0, 300))};
}

Result<Parameter> read_choices(const std::string& name, const Json& attributes,
                               std::string_view text) {
    const auto choices = attributes.find("choices");
    const bool are_usable = choices != attributes.end() && choices->is_array() &&
                            !choices->empty() && choices->size() <= kChoicesMax;
    if (!are_usable) return not_known(name, text);
    Parameter parameter;
    parameter.name = name;
    parameter.kind = choices->size() == 1 ? Kind::kConst : Kind::kChoice;
    parameter.choices.assign(choices->begin(), choices->end());
    parameter.high = static_cast<double>(choices->size() - 1);
    parameter.step = 1;
    return parameter;
}

}  // namespace

std::string distribution_json(const Parameter& parameter) {
    Json attributes;
    const char* name = "CategoricalDistribution";
    switch (parameter.kind) {
        case Kind::kFloat: {
            name = "FloatDistribution";
            const bool is_stepped = parameter.step > 0 && !parameter.log;
            attributes = {{"low", parameter.low},
                          {"high", parameter.high},
                          {"log", parameter.log},
                          {"step", is_stepped ? Json(parameter.step) : Json(nullptr)}};
            break;
        }
        case Kind::kInt:
            name = "IntDistribution";
            attributes = {{"low", static_cast<std::int64_t>(parameter.low)},
                          {"high", static_cast<std::int64_t>(parameter.high)},
                          {"log", parameter.log},
                          {"step", parameter.log ? std::int64_t{1}
                                                 : static_cast<std::int64_t>(parameter.step)}};
            break;
        case Kind::kChoice:
        case Kind::kOrdinal:
        case Kind::kConst:
            attributes["choices"] = Json::array();
            for (const Json& choice : parameter.choices)
                attributes["choices"].push_back(optuna_choice(choice));
            break;
    }
    return to_text({{"name", name}, {"attributes", std::move(attributes)}});
}

Result<Parameter> parameter_of(const std::string& name, std::string_view json_text) {
    const Result<Json> json = parse_json(json_text);
    if (!json || !json->is_object() || !json->contains("attributes"))
        return not_known(name, json_text);
    const Json type = json->value("name", Json());
    const Json& attributes = (*json)["attributes"];
    if (!type.is_string() || !attributes.is_object()) return not_known(name, json_text);
    const auto kind = type.get<std::string>();
    if (kind == "CategoricalDistribution") return read_choices(name, attributes, json_text);
    const bool is_int = kind == "IntDistribution" || kind == "IntUniformDistribution" ||
                        kind == "IntLogUniformDistribution";
    const bool is_float = kind == "FloatDistribution" || kind == "UniformDistribution" ||
                          kind == "LogUniformDistribution" || kind == "DiscreteUniformDistribution";
    const auto low = read_number(attributes, "low");
    const auto high = read_number(attributes, "high");
    if ((!is_int && !is_float) || !low || !high) return not_known(name, json_text);
    Parameter parameter;
    parameter.name = name;
    parameter.kind = is_int ? Kind::kInt : Kind::kFloat;
    parameter.low = *low;
    parameter.high = *high;
    parameter.log = read_flag(attributes, "log") || kind.find("LogUniform") != std::string::npos;
    const auto step = read_number(attributes, kind.starts_with("Discrete") ? "q" : "step");
    parameter.step = step.value_or(is_int ? 1 : 0);
    return parameter;
}

Result<void> widen(Parameter& parameter, const Parameter& other) {
    const bool is_same_kind = parameter.kind == other.kind && parameter.log == other.log &&
                              parameter.step == other.step && parameter.choices == other.choices;
    if (!is_same_kind)
        return Error{Code::kInvalidParameterValue,
                     "'" + parameter.name + "' has different distributions in different trials: " +
                         distribution_json(parameter) + " and " + distribution_json(other)};
    parameter.low = std::min(parameter.low, other.low);
    parameter.high = std::max(parameter.high, other.high);
    return {};
}

}  // namespace tune::tuner
