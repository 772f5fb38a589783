// engines.yaml is a map of engines, each a map of settings with its type. What lies over them is a
// map too, and the result is read by the engine's table of options: one set of rules for all.

#include "tuner/cli/launch/engine_choice.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/system/file.h"
#include "tuner/space/error_text.h"
#include "tuner/space/node.h"
#include "worker/launch/engine.h"

namespace tune::cli {
namespace {

constexpr std::size_t kEnginesBytesMax = 1u << 20;

/// The file that counts; empty: there is none.
std::string engines_file(const EngineFlags& flags) {
    if (flags.engines) return *flags.engines;
    std::error_code ignored;
    if (std::filesystem::exists("engines.yaml", ignored)) return "engines.yaml";
    const char* const home = std::getenv("HOME");
    const std::string usual =
        std::string(home != nullptr ? home : "") + "/.config/tune/engines.yaml";
    return std::filesystem::exists(usual, ignored) ? usual : std::string();
}

/// {} without a file.
Result<Json> read_engines(const std::string& file) {
    if (file.empty()) return Json::object();
    TUNE_TRY(text, read_file(file, kEnginesBytesMax));
    Result<tuner::Node> node = tuner::read_yaml(text);
    if (!node) return Error{node.error().code, node.error().message, file};
    Json engines = tuner::to_json(*node);
    if (engines.is_null()) return Json::object();
    if (!engines.is_object())
        return Error{Code::kInvalidParameterValue,
                     "expected a map such as {cluster: {type: slurm, partition: gpu}}", file};
    for (const auto& [name, settings] : engines.items())
        if (!settings.is_object())
            return Error{Code::kInvalidParameterValue,
                         name + ": expected a map such as {type: slurm, partition: gpu}", file};
    return engines;
}

/// `engine` of the study file: {"on": NAME, ...}; null without one.
Result<Json> engine_of_study(const std::vector<std::string>& words) {
    for (const std::string& word : words) {
        if (word.find('=') != std::string::npos) continue;
        TUNE_TRY(text, read_file(word, tuner::kNodeDepthMax * kEnginesBytesMax));
        const bool is_json = word.ends_with(".json");
        Result<tuner::Node> node = is_json ? tuner::read_json(text) : tuner::read_yaml(text);
        if (!node) return Json();  // said by the reader of the study
        const tuner::Node* engine = node->find("engine");
        if (engine == nullptr) return Json();
        Json section = tuner::to_json(*engine);
        if (section.is_string()) return Json{{"on", section}};
        return section;
    }
    return Json();
}

/// "slurm,partition=gpu,gpus=1" as {"on": "slurm", "partition": "gpu", "gpus": 1}.
Result<Json> engine_of_flag(const std::string& text) {
    Json section = Json::object();
    std::size_t begin = 0;
    while (begin <= text.size()) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        const std::string part = text.substr(begin, end - begin);
        const std::size_t equals = part.find('=');
        if (begin == 0) {
            section["on"] = part;
        } else if (equals == std::string::npos) {
            return Error{Code::kInvalidParameterValue, "--on: expected NAME=VALUE, found '" + part +
                                                           "'; e.g. slurm,partition=gpu,gpus=1"};
        } else {
            const Result<Json> value = parse_json(part.substr(equals + 1));
            section[part.substr(0, equals)] = value ? *value : Json(part.substr(equals + 1));
        }
        begin = end + 1;
    }
    return section;
}

void lay_settings_over(const Json& section, Json& settings) {
    for (const auto& [key, value] : section.items())
        if (key != "on") settings[key] = value;
}

}  // namespace

Result<std::vector<EngineChoice>> known_engines(const EngineFlags& flags) {
    const std::string file = engines_file(flags);
    TUNE_TRY(engines, read_engines(file));
    std::vector<EngineChoice> choices;
    for (const auto& [name, settings] : engines.items())
        choices.push_back({name, settings, file + ": " + name});
    return choices;
}

Result<std::optional<EngineChoice>> choose_engine(const EngineFlags& flags,
                                                  const std::vector<std::string>& words) {
    TUNE_TRY(of_study, engine_of_study(words));
    Json of_flag;
    if (flags.on) {
        TUNE_TRY(section, engine_of_flag(*flags.on));
        of_flag = std::move(section);
    }
    const Json& naming = of_flag.is_object() ? of_flag : of_study;
    if (!naming.is_object()) return std::optional<EngineChoice>();
    if (!naming.contains("on") || !naming["on"].is_string())
        return Error{Code::kInvalidParameterValue,
                     "engine: 'on' is missing: the name of an engine, e.g. {on: slurm, agents: 8}"};
    const auto name = naming["on"].get<std::string>();
    TUNE_TRY(known, known_engines(flags));
    std::vector<std::string> names;
    for (const EngineChoice& one : known) names.push_back(one.name);
    for (const launch::EngineKind* kind : launch::engine_kinds()) names.emplace_back(kind->name);
    EngineChoice choice{name, Json(), "engine " + name};
    for (const EngineChoice& one : known)
        if (one.name == name) choice = one;
    if (choice.settings.is_null()) {
        if (launch::find_engine(name) == nullptr)
            return Error{Code::kInvalidParameterValue,
                         "there is no engine " + tuner::in_quotes(name) +
                             tuner::known_words(name, names) +
                             ". Engines of yours stand in engines.yaml"};
        choice.settings = {{"type", name}};
    }
    // What the study says is about the engine that it names.
    if (of_study.is_object() && of_study.value("on", Json()) == naming["on"])
        lay_settings_over(of_study, choice.settings);
    if (of_flag.is_object()) lay_settings_over(of_flag, choice.settings);
    if (flags.agents) choice.settings["agents"] = *flags.agents;
    return std::optional(std::move(choice));
}

}  // namespace tune::cli
