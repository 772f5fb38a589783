// NNI's search_space.json, and its experiment's config with the space inside. A nested choice
// becomes conditions: what stands in the option "conv" of "layer" is "layer.NAME" when layer is
// conv.

#include <cmath>
#include <nlohmann/json.hpp>

#include "tuner/interop/foreign/builder.h"
#include "tuner/space/error_text.h"

namespace tune::tuner {
namespace {

class SpaceReader {
public:
    explicit SpaceReader(StudyBuilder& builder) : builder_(builder) {}

    Result<void> read(const Node& space, const std::string& prefix, const Json& when) {
        for (const Entry& entry : space.entries) {
            if (entry.key == "_name") continue;
            TUNE_TRY_VOID(read_parameter(entry, prefix + entry.key, when));
        }
        return {};
    }

private:
    Result<void> read_parameter(const Entry& entry, const std::string& name, const Json& when) {
        const Node* type = entry.value.find("_type");
        const Node* value = entry.value.find("_value");
        if (type == nullptr || value == nullptr || value->type != Node::Type::kList)
            return error_at(entry.place, name,
                            "expected {\"_type\": \"uniform\", \"_value\": [low, high]}");
        if (type->text == "choice") return read_choice(entry, name, *value, when);
        TUNE_TRY(spec, read_numbers(entry, name, *type, *value));
        return builder_.add(entry.place, name, std::move(spec), when);
    }

    Result<void> read_choice(const Entry& entry, const std::string& name, const Node& values,
                             const Json& when) {
        Json choices = Json::array();
        for (const Node& item : values.items) {
            const Node* branch = item.find("_name");
            choices.push_back(branch != nullptr ? to_json(*branch) : to_json(item));
        }
        TUNE_TRY_VOID(builder_.add(entry.place, name, {{"choice", choices}}, when));
        for (const Node& item : values.items) {
            const Node* branch = item.find("_name");
            if (branch == nullptr) continue;
            Json inner = when.is_null() ? Json::object() : when;
            inner[name] = to_json(*branch);
            TUNE_TRY_VOID(read(item, name + ".", inner));
        }
        return {};
    }

    Result<Json> read_numbers(const Entry& entry, const std::string& name, const Node& type,
                              const Node& value) {
        const std::string& kind = type.text;
        ForeignDomain domain;
        const bool is_stepped = kind.starts_with('q');
        const std::string plain = is_stepped ? kind.substr(1) : kind;
        TUNE_TRY(numbers, numbers_in(value, name + "._value", is_stepped ? 3 : 2));
        if (is_stepped) domain.step = numbers[2];
        // clip(round(u / q) * q, low, high): quniform in nni/parameter_expressions.py, NNI 3.0.
        domain.is_clipped = true;
        domain.low = numbers[0];
        domain.high = numbers[1];
        if (plain == "randint" && !is_stepped) {
            domain.is_integer = true;
            domain.high = numbers[1] - 1;  // the upper end is not included there
        } else if (plain == "loguniform") {
            domain.log = true;
        } else if (plain == "normal" || plain == "lognormal") {
            domain.kind = ForeignDomain::Kind::kNormal;
            domain.log = plain == "lognormal";
            domain.center = domain.log ? std::exp(numbers[0]) : numbers[0];
            domain.spread = numbers[1];
        } else if (plain != "uniform") {
            return error_at(type.place, name, "_type " + in_quotes(kind) + " has no counterpart");
        }
        return builder_.spec_of(entry.place, name, domain);
    }

    StudyBuilder& builder_;
};

const Node* field(const Node* map, const char* key) {
    return map == nullptr ? nullptr : map->find(key);
}

/// Settings of theirs that are settings of ours, by name; the others are said.
void take_settings(const Node* from, const std::string& path,
                   const std::vector<std::pair<const char*, const char*>>& names,
                   const std::vector<std::string>& known_too, Json& into, StudyBuilder& builder) {
    if (from == nullptr) return;
    std::vector<std::string> known = known_too;
    for (const auto& [theirs, ours] : names) {
        const Node* value = from->find(theirs);
        if (value == nullptr || value->type == Node::Type::kNull) continue;
        into[ours] = to_json(*value);
        known.emplace_back(theirs);
    }
    note_others(builder, *from, known, path);
}

void read_tuner(const Node& root, StudyBuilder& builder) {
    const Node* tuner = root.find("tuner");
    const Node* arguments = field(tuner, "classArgs");
    const Node* mode = field(arguments, "optimize_mode");
    builder.set("metric", {{"name", "default"},
                           {"goal", mode != nullptr && mode->text == "maximize" ? "max" : "min"}});
    builder.note({},
                 "the metric is called 'default', as in NNI; name the one that the script logs");
    const Node* name = field(tuner, "name");
    if (name == nullptr) name = field(tuner, "builtinTunerName");
    if (name == nullptr) return;
    const std::string& is = name->text;
    const char* type = is == "TPE"                     ? "tpe"
                       : is == "Random"                ? "random"
                       : is == "GridSearch"            ? "grid"
                       : is == "GPTuner" || is == "GP" ? "gp"
                                                       : nullptr;
    if (type == nullptr)
        builder.note(name->place, "tuner " + in_quotes(is) + " has no counterpart; tpe is used");
    Json sampler = {{"type", type == nullptr ? "tpe" : type}};
    take_settings(arguments, "tuner.classArgs", {{"seed", "seed"}}, {"optimize_mode", "tpe_args"},
                  sampler, builder);
    const bool is_tpe = is == "TPE";
    take_settings(
        field(arguments, "tpe_args"), "tuner.classArgs.tpe_args",
        is_tpe ? std::vector<std::pair<const char*, const char*>>{{"n_startup_jobs", "startup"},
                                                                  {"n_ei_candidates", "candidates"}}
               : std::vector<std::pair<const char*, const char*>>{},
        {}, sampler, builder);
    if (type != nullptr || sampler.size() > 1) builder.set("sampler", sampler);
}

void read_assessor(const Node& assessor, StudyBuilder& builder) {
    const Node* name = field(&assessor, "name");
    if (name == nullptr) name = field(&assessor, "builtinAssessorName");
    if (name == nullptr || name->text != "Medianstop") {
        builder.note(assessor.place, "assessor has no counterpart; see 'pruner'");
        return;
    }
    // One complete trial is enough there (nni/algorithms/hpo/medianstop_assessor.py).
    Json pruner = {{"type", "median"}, {"startup", 1}};
    take_settings(field(&assessor, "classArgs"), "assessor.classArgs", {{"start_step", "warmup"}},
                  {"optimize_mode"}, pruner, builder);
    note_median(builder, assessor.place);
    builder.set("pruner", pruner);
}

void read_experiment(const Node& root, StudyBuilder& builder) {
    if (const Node* name = root.find("experimentName")) builder.set("study", to_json(*name));
    if (const Node* command = root.find("trialCommand")) {
        builder.set("command", to_json(*command));
        builder.note(
            command->place,
            "the script asked NNI for its values; give it {args} or {name}, or let it read "
            "TUNE_PARAMS");
    }
    read_tuner(root, builder);
    if (const Node* assessor = root.find("assessor")) read_assessor(*assessor, builder);
    Json budget = Json::object();
    const std::pair<const char*, const char*> budgets[] = {{"maxTrialNumber", "trials"},
                                                           {"trialConcurrency", "parallel"},
                                                           {"maxExperimentDuration", "time"}};
    for (const auto& [theirs, ours] : budgets)
        if (const Node* value = root.find(theirs)) budget[ours] = to_json(*value);
    if (!budget.empty()) builder.set("budget", budget);
    note_others(builder, root,
                {"experimentName", "searchSpace", "trialCommand", "tuner", "assessor",
                 "maxTrialNumber", "trialConcurrency", "maxExperimentDuration"},
                "");
}

}  // namespace

Result<void> read_nni(const Node& root, StudyBuilder& builder) {
    for (const char* key : {"searchSpaceFile", "searchSpacePath"})
        if (const Node* file = root.find(key))
            return error_at(
                file->place, key,
                "the space is in the file " + in_quotes(file->text) + "; give that one");
    const Node* space = root.find("searchSpace");
    if (space != nullptr) read_experiment(root, builder);
    return SpaceReader(builder).read(space != nullptr ? *space : root, "", nullptr);
}

}  // namespace tune::tuner
