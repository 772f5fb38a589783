#include "tuner/pruner/pruner_config.h"

#include <nlohmann/json.hpp>

#include "tuner/options/fields.h"
#include "tuner/pruner/pruner_kind.h"

namespace tune::tuner {

PrunerConfig::PrunerConfig() : PrunerConfig(pruner_named("none")) {}

PrunerConfig::PrunerConfig(const PrunerKind& kind) : Chosen(kind) {}

PrunerConfig::PrunerConfig(const PrunerKind& kind, std::any options)
    : Chosen(kind, std::move(options)) {}

const PrunerKind& PrunerConfig::kind() const {
    return static_cast<const PrunerKind&>(base_kind());
}

PrunerConfig pruner_named(std::string_view name) {
    const KindBase* kind = find_kind(pruner_kinds(), name);
    TUNE_CHECK(kind != nullptr, "there is a pruner of this name");
    return PrunerConfig(static_cast<const PrunerKind&>(*kind));
}

Result<PrunerConfig> read_pruner(const Node& node, const std::string& path, int depth) {
    TUNE_TRY(kind, read_kind(node, path, pruner_kinds()));
    const OptionTable& options = kind->options;
    TUNE_TRY_VOID(options.check_given(node, path));
    std::vector<std::string> known = options.names();
    known.insert(known.begin(), "type");
    Node short_form;
    TUNE_TRY(fields, Fields::open(section_of(node, short_form), path, known, depth));
    PrunerConfig pruner(static_cast<const PrunerKind&>(*kind));
    TUNE_TRY_VOID(options.read(fields, pruner.address()));
    return pruner;
}

Json to_json(const PrunerConfig& pruner) {
    Json json = {{"type", std::string(pruner.name())}};
    pruner.kind().options.write(pruner.address(), json);
    return json;
}

}  // namespace tune::tuner
