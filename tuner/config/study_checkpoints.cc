// `checkpoints` of study.yaml: where trials' checkpoints are kept besides the agents' disks.

#include <nlohmann/json.hpp>

#include "tuner/config/study_sections.h"
#include "tuner/options/fields.h"
#include "tuner/space/error_text.h"

namespace tune::tuner {
namespace {

constexpr std::size_t kStoreBytesMax = 4096;
constexpr std::int64_t kEveryMin_ms = 100;
constexpr int kKeepMax = 100;

Result<void> read_store(const Fields& fields, CheckpointPolicy& policy) {
    const Node* node = fields.find("store");
    if (node == nullptr) return {};
    const std::string path = fields.path_of("store");
    TUNE_TRY_VOID(check_text(*node, path, kStoreBytesMax));
    const std::string& store = node->text;
    const bool is_word = store == "auto" || store == "artifacts" || store == "local";
    const bool is_folder = store.starts_with("file:///") && store.size() > 8;
    if (!is_word && !is_folder)
        return error_at(
            node->place, path,
            "expected auto, artifacts, local or a folder that all agents see, such as "
            "file:///shared/checkpoints, found " +
                in_quotes(store) +
                (store.find("://") == std::string::npos
                     ? ""
                     : "; agents have no client for object stores: use artifacts, or mount it"));
    policy.store = store;
    return {};
}

OptionTable checkpoint_rows() {
    TableOf<CheckpointPolicy> table;
    table
        .custom(
            "store",
            {.type = "word, or file:///FOLDER",
             .schema =
                 R"({"type": "string",
                         "pattern": "^(auto|artifacts|local|file:///.+)$"})",
             .api = "text",
             .read = read_store,
             .write = [](const CheckpointPolicy& policy,
                         Json& json) { json["store"] = policy.store; }},
            "where a trial's checkpoints are kept besides the agent's disk, so that another "
            "machine can resume it: artifacts (of its run), a folder that all agents see, or local "
            "(nowhere)")
        .defaults_to("artifacts; within `tune run`, local");
    table.duration("every", &CheckpointPolicy::every_ms, kEveryMin_ms,
                   "time between two stores while a trial runs, if there is something new; also "
                   "stored when an attempt ends that another will follow");
    table.integer(
        "keep", &CheckpointPolicy::keep, 1, kKeepMax,
        "number of sets kept, newest first: if one is damaged, the one before it is used");
    table.choice("after", &CheckpointPolicy::keeps_after_end, {{"remove", false}, {"keep", true}},
                 "what is done with them when the trial has ended for good");
    return table;
}

}  // namespace

const OptionTable& checkpoint_options() {
    static const OptionTable kOptions = checkpoint_rows();
    return kOptions;
}

Result<void> read_checkpoints(const Node& node, StudyConfig& config) {
    TUNE_TRY(fields, Fields::open(node, "checkpoints", checkpoint_options().names()));
    CheckpointPolicy policy;
    TUNE_TRY_VOID(checkpoint_options().read(fields, &policy));
    config.checkpoints = std::move(policy);
    return {};
}

Json to_json(const CheckpointPolicy& policy) {
    Json json = Json::object();
    checkpoint_options().write(&policy, json);
    return json;
}

}  // namespace tune::tuner
