#include "worker/train/checkpoint/checkpoint.h"

#include <nlohmann/json.hpp>

#include "base/version.h"

namespace tune::train {
namespace {

Result<Json> json_of(const Safetensors& file, const char* key) {
    const auto found = file.metadata().find(key);
    if (found == file.metadata().end())
        return Error{Code::kDataLoss, std::string("the checkpoint has no '") + key +
                                          "': it was not written by tune-trainer"};
    auto json = parse_json(found->second);
    if (!json)
        return Error{Code::kDataLoss, std::string("the checkpoint's '") + key +
                                          "' is damaged: " + json.error().message};
    return json;
}

using Check = Result<void> (*)(const TrainConfig& config, const Json& other);

/// The record of a file whose training passes `check`.
Result<Record> read_checked(const TrainConfig& config, const Safetensors& file, Check check) {
    TUNE_TRY(config_json, json_of(file, "tune.config"));
    TUNE_TRY(inputs_json, json_of(file, "tune.inputs"));
    TUNE_TRY(state_json, json_of(file, "tune.state"));
    TUNE_TRY_VOID(check(config, config_json));
    auto inputs = Inputs::from_json(inputs_json);
    if (!inputs) return Error{Code::kDataLoss, inputs.error().message};
    TUNE_TRY(progress, Progress::from_json(state_json));
    return Record{std::move(progress), *std::move(inputs)};
}

}  // namespace

Result<Record> read_record(const TrainConfig& config, const Safetensors& file) {
    return read_checked(config, file, check_same_training);
}

Result<Record> read_parent(const TrainConfig& config, const Safetensors& file) {
    TUNE_TRY(parent, read_checked(config, file, check_same_network));
    Progress progress;
    progress.epoch = parent.progress.epoch;
    progress.epoch_reported = parent.progress.epoch;
    progress.last_metrics = std::move(parent.progress.last_metrics);
    return Record{std::move(progress), std::move(parent.inputs)};
}

std::string last_checkpoint(const TrainConfig& config, const Record& record,
                            const Learner& learner) {
    return write_safetensors(learner.state(), {{"format", "pt"},
                                               {"tune.version", kVersion},
                                               {"tune.config", to_text(result_deciding(config))},
                                               {"tune.inputs", to_text(record.inputs.to_json())},
                                               {"tune.state", to_text(record.progress.to_json())}});
}

std::string best_checkpoint(const Record& record, const Learner& learner) {
    Json metrics = Json::object();
    for (const NamedValue& metric : record.progress.last_metrics)
        metrics[metric.name] = json_number(metric.value);
    return write_safetensors(learner.weights(), {{"format", "pt"},
                                                 {"tune.version", kVersion},
                                                 {"tune.python", learner.python_source()},
                                                 {"tune.inputs", to_text(record.inputs.to_json())},
                                                 {"tune.metrics", to_text(metrics)}});
}

}  // namespace tune::train
