#include "tuner/interop/foreign/foreign.h"

#include <algorithm>
#include <array>

#include "tuner/config/study_config.h"
#include "tuner/interop/foreign/builder.h"

namespace tune::tuner {
namespace {

struct System {
    ForeignSystem system;
    const char* name;
    const char* title;
    Result<void> (*read)(const Node&, StudyBuilder&);
};

constexpr std::array<System, 5> kSystems = {
    System{ForeignSystem::kOptuna, "optuna", "from Optuna's distributions", read_optuna},
    {ForeignSystem::kWandb, "wandb", "from a Weights & Biases sweep", read_wandb},
    {ForeignSystem::kNni, "nni", "from NNI", read_nni},
    {ForeignSystem::kKatib, "katib", "from a Katib experiment", read_katib},
    {ForeignSystem::kHyperopt, "hyperopt", "from a Hyperopt space", read_hyperopt}};

bool any_child(const Node& root, std::initializer_list<const char*> keys) {
    return std::any_of(root.entries.begin(), root.entries.end(), [&](const Entry& entry) {
        return std::any_of(keys.begin(), keys.end(),
                           [&](const char* key) { return entry.value.find(key) != nullptr; });
    });
}

std::optional<ForeignSystem> recognised(const Node& root) {
    if (root.find("hyperopt") != nullptr) return ForeignSystem::kHyperopt;
    if (root.find("apiVersion") != nullptr) return ForeignSystem::kKatib;
    if (root.find("searchSpace") != nullptr || root.find("searchSpaceFile") != nullptr ||
        root.find("searchSpacePath") != nullptr || any_child(root, {"_type"}))
        return ForeignSystem::kNni;
    if (root.find("parameters") != nullptr && root.find("method") != nullptr)
        return ForeignSystem::kWandb;
    // As Optuna's database holds them: JSON in texts.
    const bool are_texts =
        !root.entries.empty() &&
        std::all_of(root.entries.begin(), root.entries.end(), [](const Entry& entry) {
            return entry.value.text.find("Distribution\"") != std::string::npos;
        });
    if (are_texts || any_child(root, {"attributes", "type"})) return ForeignSystem::kOptuna;
    return std::nullopt;
}

}  // namespace

std::optional<ForeignSystem> foreign_system(std::string_view name) {
    for (const System& one : kSystems)
        if (one.name == name) return one.system;
    return std::nullopt;
}

std::string foreign_systems() {
    std::string names;
    for (const System& one : kSystems) names += (names.empty() ? "" : ", ") + std::string(one.name);
    return names;
}

Result<std::string> study_from_foreign(std::string_view text, std::optional<ForeignSystem> system) {
    TUNE_TRY(root, read_yaml(text));
    if (root.type != Node::Type::kMap)
        return error_at(root.place, {}, "expected a map, found " + describe(root));
    if (!system) system = recognised(root);
    if (!system)
        return Error{Code::kInvalidParameterValue,
                     "the file is not from a known system; name the system with --from: " +
                         foreign_systems()};
    StudyBuilder builder;
    const auto found = std::find_if(kSystems.begin(), kSystems.end(),
                                    [&](const System& one) { return one.system == *system; });
    TUNE_TRY_VOID(found->read(root, builder));
    if (!builder.has_parameters())
        return error_at(root.place, {}, "it has no parameters to search");
    std::string study = builder.text(found->title);
    StudySource source;
    source.text = study;
    if (const Result<StudyConfig> read = read_study(source); !read)
        return Error{read.error().code, "the result is not a study that can be run: " +
                                            read.error().message + "\n\n" + study};
    return study;
}

}  // namespace tune::tuner
