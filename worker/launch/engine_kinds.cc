// The registry of engines (Slurm, Kubernetes, ssh, scripts), and what all of them share: reading
// settings with the study file's errors, names that every engine accepts (lower case, digits,
// single hyphens, at most 30), and the refusal of a server address that agents elsewhere cannot
// reach.

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>

#include "base/crypto/digest.h"
#include "base/text/counted.h"
#include "base/system/address.h"
#include "base/text/hex.h"
#include "base/text/uri.h"
#include "tuner/options/fields.h"
#include "tuner/options/option_table.h"
#include "tuner/space/error_text.h"
#include "tuner/space/node.h"
#include "worker/launch/engine.h"

namespace tune::launch {

extern const EngineKind kExecEngine;
extern const EngineKind kKubernetesEngine;
extern const EngineKind kSlurmEngine;
extern const EngineKind kSshEngine;

namespace {

constexpr std::array<const EngineKind*, 4> kKinds = {
    &kExecEngine,
    &kKubernetesEngine,
    &kSlurmEngine,
    &kSshEngine,
};

/// What a name may hold everywhere: lower case, digits, single hyphens, at most 30.
std::string slug_of(std::string_view study) {
    constexpr std::size_t kCharsMax = 30;
    std::string slug;
    for (const char c : study) {
        const char lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        const bool is_kept = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
        if (is_kept)
            slug += lower;
        else if (!slug.empty() && slug.back() != '-')
            slug += '-';
        if (slug.size() == kCharsMax) break;
    }
    while (!slug.empty() && slug.back() == '-') slug.pop_back();
    return slug.empty() ? "agents" : slug;
}

struct Opened {
    const EngineKind* kind;
    tuner::Node node;
};

Result<Opened> open_settings(const Json& settings, const std::string& path) {
    TUNE_TRY(node, tuner::node_from_json(settings));
    const tuner::Node* type = node.find("type");
    std::vector<std::string> names;
    for (const EngineKind* kind : engine_kinds()) names.emplace_back(kind->name);
    if (type == nullptr || type->type != tuner::Node::Type::kString)
        return tuner::error_at({}, path, "'type' is missing: one of " + tuner::listed(names));
    const EngineKind* kind = find_engine(type->text);
    if (kind == nullptr)
        return tuner::error_at({}, path + ".type",
                               "there is no engine " + tuner::in_quotes(type->text) +
                                   tuner::known_words(type->text, names));
    return Opened{kind, std::move(node)};
}

Result<tuner::Fields> fields_of(const Opened& opened, const std::string& path) {
    std::vector<std::string> known = {"type"};
    for (const tuner::OptionTable* table : {&agent_options(), &opened.kind->options()})
        for (std::string& name : table->names()) known.push_back(std::move(name));
    return tuner::Fields::open(opened.node, path, known);
}

}  // namespace

std::span<const EngineKind* const> engine_kinds() {
    return kKinds;
}

const EngineKind* find_engine(std::string_view name) {
    const auto found = std::find_if(kKinds.begin(), kKinds.end(),
                                    [name](const EngineKind* kind) { return kind->name == name; });
    return found == kKinds.end() ? nullptr : *found;
}

Result<AgentSettings> read_agent_settings(const Json& settings, const std::string& path) {
    TUNE_TRY(opened, open_settings(settings, path));
    TUNE_TRY(fields, fields_of(opened, path));
    AgentSettings agents;
    TUNE_TRY_VOID(agent_options().read(fields, &agents));
    if (agents.nodes > agents.agents)
        return tuner::error_at({}, path + ".nodes",
                               "a gang of " + std::to_string(agents.nodes) +
                                   " agents does not fit the bound of " +
                                   counted(agents.agents, "agent") + "; raise 'agents'");
    return agents;
}

Result<std::unique_ptr<Engine>> make_engine(const Json& settings, const std::string& path,
                                            Launch launch) {
    TUNE_TRY(agents, read_agent_settings(settings, path));
    TUNE_TRY(opened, open_settings(settings, path));
    TUNE_TRY(fields, fields_of(opened, path));
    launch.agents = std::move(agents);
    return opened.kind->create(fields, std::move(launch));
}

std::string group_name(std::string_view study, std::string_view where) {
    const Sha256Bytes digest = sha256(std::string(where) + "\n" + std::string(study));
    constexpr std::size_t kDigits = 8;
    return "tune-" + slug_of(study) + "-" + hex_encode(digest).substr(0, kDigits);
}

bool is_loopback_url(const std::string& url) {
    const UriParts parts = split_uri(url);
    return is_loopback(split_authority(parts.authority).host);
}

Error unreachable_server(const std::string& url, const std::string& hosts) {
    return Error{Code::kInvalidParameterValue,
                 "the server " + url + " can only be reached from this machine, not from " + hosts +
                     ". Start `tune server --host 0.0.0.0 --tls-cert ... --tls-key ...` and give "
                     "--server https://HOST:PORT; or, where something forwards the port, name the "
                     "address that the agents see with 'server'"};
}

std::string_view stop_name(StopKind kind) {
    constexpr std::array<std::string_view, 3> kNames = {"drain", "stop", "kill"};
    return kNames[static_cast<std::size_t>(kind)];
}

std::string_view state_name(AgentJob::State state) {
    constexpr std::array<std::string_view, 4> kNames = {"pending", "running", "ended", "failed"};
    return kNames[static_cast<std::size_t>(state)];
}

}  // namespace tune::launch
