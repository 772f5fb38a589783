// What answers of the API hold of a study's configuration, from the tables of options.

#include <nlohmann/json.hpp>

#include "tuner/config/study_schema.h"
#include "tuner/config/study_sections.h"
#include "tuner/pruner/pruner_kind.h"
#include "tuner/sampler/sampler_kind.h"

namespace tune::tuner {
namespace {

/// A type as the description's readers take it; one that is a JSON Schema stands as it is.
std::string field(const std::string& name, const std::string& type, const std::string& help) {
    if (type.starts_with('{')) return "    " + name + ": " + type + "\n";
    return "    " + name + ": " + to_text(Json(help.empty() ? type : type + " -- " + help)) + "\n";
}

std::string fields_of(const OptionTable& table) {
    std::string text;
    for (const Option& option : table.rows())
        text += field(option.name, table.api_text(option), option.help);
    return text;
}

std::string schema(const std::string& name, const OptionTable& table) {
    return "  " + name + ":\n" + fields_of(table);
}

/// "running_percentile" as "StudyPrunerRunningPercentile".
std::string schema_name(std::string name, std::string_view kind) {
    bool is_start = true;
    for (const char c : kind) {
        if (c != '_')
            name += is_start && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
        is_start = c == '_';
    }
    return name;
}

/// One schema for each kind, and one that is any of them.
template <class FieldsOf>
std::string kinds(const std::string& name, Kinds kinds, FieldsOf fields_of_kind) {
    std::string any;
    std::string text;
    for (const KindBase* kind : kinds) {
        const std::string own = schema_name(name, kind->name);
        any += (any.empty() ? "" : ", ") + ("{\"$ref\": \"#/components/schemas/" + own + "\"}");
        text += "  " + own + ":\n" +
                field("type", "enum(" + std::string(kind->name) + ")!", std::string(kind->help)) +
                fields_of_kind(*kind);
    }
    return "  " + name + ": {json_schema: {anyOf: [" + any + "]}}\n" + text;
}

std::string sampler_fields(const KindBase& kind) {
    const OptionTable& common = common_sampler_options();
    std::string text;
    for (const Option& option : common.rows())
        if (option.name == "seed" || !static_cast<const SamplerKind&>(kind).ends_itself)
            text += field(option.name, common.api_text(option), option.help);
    return text + fields_of(kind.options);
}

std::string pruner_fields(const KindBase& kind) {
    return fields_of(kind.options);
}

}  // namespace

std::string study_api_description() {
    return "tag: Studies\nschemas:\n" + schema("StudyMetric", metric_options()) +
           schema("StudyConstraint", constraint_options()) +
           kinds("StudySampler", sampler_kinds(), sampler_fields) +
           kinds("StudyPruner", pruner_kinds(), pruner_fields) +
           schema("StudyBudget", budget_options()) + schema("CostBudget", cost_options()) +
           schema("NoProgressBudget", no_progress_options()) +
           schema("StudyResources", resources_options()) +
           schema("WarmStart", warm_start_options()) +
           schema("EarlierTrial", earlier_trial_options());
}

}  // namespace tune::tuner
