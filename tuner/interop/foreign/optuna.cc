// Optuna's distributions as its distribution_to_json() writes them (release 5.0.0, and the kinds of
// releases before 3.0), one a parameter: {"lr": {"name": "FloatDistribution", "attributes": ...}}.

#include <nlohmann/json.hpp>

#include "tuner/interop/foreign/builder.h"
#include "tuner/space/error_text.h"

namespace tune::tuner {
namespace {

Result<double> attribute(const Node& attributes, const char* key, const std::string& path) {
    const Node* value = attributes.find(key);
    if (value == nullptr)
        return error_at(attributes.place, path, std::string("'") + key + "' is missing");
    return number_in(*value, path + "." + key);
}

Result<void> add_distribution(const Entry& entry, const Node& distribution, StudyBuilder& builder) {
    const std::string& name = entry.key;
    const Node* kind = distribution.find("name");
    const Node* inner = distribution.find("attributes");
    if (kind == nullptr) kind = distribution.find("type");
    if (kind == nullptr || kind->type != Node::Type::kString)
        return error_at(entry.place, name,
                        "expected a distribution such as {\"name\": \"FloatDistribution\", "
                        "\"attributes\": {...}}");
    const Node& attributes = inner != nullptr ? *inner : distribution;
    const std::string& of = kind->text;
    if (of == "CategoricalDistribution" || of == "categorical") {
        const Node* choices = attributes.find("choices");
        if (choices == nullptr || choices->type != Node::Type::kList)
            return error_at(attributes.place, name, "'choices' is missing");
        return builder.add(entry.place, name, {{"choice", to_json(*choices)}}, nullptr);
    }
    ForeignDomain domain;
    domain.is_integer = of == "IntDistribution" || of == "int" || of == "IntUniformDistribution" ||
                        of == "IntLogUniformDistribution";
    const bool is_known = domain.is_integer || of == "FloatDistribution" || of == "float" ||
                          of == "UniformDistribution" || of == "LogUniformDistribution" ||
                          of == "DiscreteUniformDistribution";
    if (!is_known) return error_at(kind->place, name, "unknown distribution " + in_quotes(of));
    TUNE_TRY(low, attribute(attributes, "low", name));
    TUNE_TRY(high, attribute(attributes, "high", name));
    const Node* log = attributes.find("log");
    domain.log = of == "LogUniformDistribution" || of == "IntLogUniformDistribution" ||
                 (log != nullptr && log->boolean);
    double step = 0;
    for (const char* key : {"step", "q"}) {
        const Node* given = attributes.find(key);
        if (given == nullptr || given->type == Node::Type::kNull) continue;
        TUNE_TRY(read, number_in(*given, name + "." + key));
        step = read;
    }
    if (step < 0) return error_at(attributes.place, name, "the step is below 0");
    // Optuna's grids start at `low`, as ours do.
    Json spec =
        domain.is_integer
            ? Json{{"int", {static_cast<std::int64_t>(low), static_cast<std::int64_t>(high)}}}
            : Json{{"float", {low, high}}};
    if (domain.is_integer && step > 1 && low < high) spec["step"] = static_cast<std::int64_t>(step);
    if (!domain.is_integer && step > 0 && low < high) spec["step"] = step;
    if (domain.log) spec["log"] = true;
    return builder.add(entry.place, name, std::move(spec), nullptr);
}

}  // namespace

Result<void> read_optuna(const Node& root, StudyBuilder& builder) {
    for (const Entry& entry : root.entries) {
        if (entry.value.type != Node::Type::kString) {
            TUNE_TRY_VOID(add_distribution(entry, entry.value, builder));
            continue;
        }
        // As the database holds it: JSON in a text.
        Result<Node> inner = read_json(entry.value.text);
        if (!inner) return error_at(entry.value.place, entry.key, inner.error().message);
        TUNE_TRY_VOID(add_distribution(entry, *inner, builder));
    }
    builder.note({},
                 "conditions and the metric are in the objective's code: add 'when', 'metric' "
                 "and 'command'");
    return {};
}

}  // namespace tune::tuner
