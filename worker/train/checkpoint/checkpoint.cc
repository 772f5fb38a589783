// A checkpoint is whole or it is not used: its metadata hold a digest of its tensors, and a damaged
// one gives way to the one before it.

#include "worker/train/checkpoint/checkpoint.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "base/system/file.h"
#include "base/version.h"
#include "loader/format/hash.h"

namespace tune::train {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{1} << 40;

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

/// Of names and bytes of all tensors, in the order of the names.
std::string digest_of(const std::vector<TensorBytes>& tensors) {
    std::vector<const TensorBytes*> sorted;
    for (const TensorBytes& each : tensors) sorted.push_back(&each);
    std::sort(sorted.begin(), sorted.end(),
              [](const TensorBytes* a, const TensorBytes* b) { return a->name < b->name; });
    std::string digests;
    for (const TensorBytes* each : sorted)
        digests += each->name + " " + std::to_string(loader::xxh3_64(each->data)) + "\n";
    return std::to_string(loader::xxh3_64(std::as_bytes(std::span(digests))));
}

/// Tensors in memory of their own, while training changes those that they were.
class Copies {
public:
    explicit Copies(std::vector<TensorBytes> tensors) : tensors_(std::move(tensors)) {
        std::size_t size = 0;
        for (const TensorBytes& each : tensors_) size += each.data.size();
        bytes_ = std::make_unique_for_overwrite<std::byte[]>(size);
        std::byte* place = bytes_.get();
        for (TensorBytes& each : tensors_) {
            std::copy(each.data.begin(), each.data.end(), place);
            each.data = {place, each.data.size()};
            place += each.data.size();
        }
    }
    [[nodiscard]] const std::vector<TensorBytes>& tensors() const { return tensors_; }

private:
    std::unique_ptr<std::byte[]> bytes_;
    std::vector<TensorBytes> tensors_;
};

/// Digest and layout are another thread's work; what they are made of is copied now.
FileBytes deferred(std::vector<TensorBytes> tensors, std::map<std::string, std::string> metadata) {
    const auto copies = std::make_shared<const Copies>(std::move(tensors));
    return FileBytes(std::function<std::string()>([copies, metadata = std::move(metadata)] {
        std::map<std::string, std::string> whole = metadata;
        whole["tune.xxh3_64"] = digest_of(copies->tensors());
        return write_safetensors(copies->tensors(), whole);
    }));
}

/// Errors: kDataLoss.
Result<void> check_whole(const std::filesystem::path& path) {
    TUNE_TRY(file, Safetensors::read(path.string()));
    TUNE_TRY(state, json_of(file, "tune.state"));
    TUNE_TRY_VOID(Progress::from_json(state));
    const auto digest = file.metadata().find("tune.xxh3_64");
    if (digest != file.metadata().end() && digest->second != digest_of(file.tensors()))
        return Error{Code::kDataLoss, "its tensors are not those that were written", path.string()};
    return {};
}

/// Weights of one epoch, whole. Files of earlier versions have no digest. Errors: kDataLoss.
Result<Safetensors> read_weights(const std::filesystem::path& path) {
    TUNE_TRY(file, Safetensors::read(path.string()));
    const auto digest = file.metadata().find("tune.xxh3_64");
    if (digest != file.metadata().end() && digest->second != digest_of(file.tensors()))
        return Error{Code::kDataLoss, "its tensors are not those that were written", path.string()};
    return file;
}

/// The record of a file whose training passes `check`.
Result<Record> read_checked(const TrainConfig& config, const Safetensors& file, Check check) {
    TUNE_TRY(config_json, json_of(file, "tune.config"));
    TUNE_TRY(inputs_json, json_of(file, "tune.inputs"));
    TUNE_TRY(state_json, json_of(file, "tune.state"));
    const auto digest = file.metadata().find("tune.xxh3_64");
    if (digest != file.metadata().end() && digest->second != digest_of(file.tensors()))
        return Error{Code::kDataLoss, "the checkpoint's tensors are not those that were written"};
    TUNE_TRY_VOID(check(config, config_json));
    auto inputs = Inputs::from_json(inputs_json);
    if (!inputs) return Error{Code::kDataLoss, inputs.error().message};
    TUNE_TRY(progress, Progress::from_json(state_json));
    return Record{std::move(progress), *std::move(inputs)};
}

}  // namespace

std::string usable_checkpoint(const CheckpointDirectory& directory, bool talks) {
    std::error_code ignored;
    const std::string last = directory.last().string();
    const std::string previous = directory.previous().string();
    if (!std::filesystem::exists(last, ignored)) return {};
    const Result<void> whole = check_whole(last);
    if (whole || !std::filesystem::exists(previous, ignored) || !check_whole(previous)) return last;
    if (talks)
        std::fprintf(stderr, "warning: %s; resuming from the checkpoint before it, %s\n",
                     whole.error().text().c_str(), previous.c_str());
    return previous;
}

Result<Safetensors> read_on_all_ranks(Collective& collective, const std::filesystem::path& path) {
    if (collective.size() == 1) return Safetensors::read(path);
    TUNE_TRY(bytes, collective.from_first(
                        [&]() -> Result<std::string> { return read_file(path, kFileBytesMax); }));
    auto file = Safetensors::parse(std::move(bytes));
    if (!file) return Error{file.error().code, file.error().message, path};
    return file;
}

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

FileBytes last_checkpoint(const TrainConfig& config, const Record& record, const Learner& learner) {
    return deferred(learner.state(), {{"format", "pt"},
                                      {"tune.version", kVersion},
                                      {"tune.config", to_text(result_deciding(config))},
                                      {"tune.inputs", to_text(record.inputs.to_json())},
                                      {"tune.state", to_text(record.progress.to_json())}});
}

FileBytes best_checkpoint(const Record& record, const Learner& learner) {
    Json metrics = Json::object();
    for (const NamedValue& metric : record.progress.last_metrics)
        metrics[metric.name] = json_number(metric.value);
    std::map<std::string, std::string> metadata = {
        {"format", "pt"},
        {"tune.version", kVersion},
        {"tune.python", learner.python_source()},
        {"tune.inputs", to_text(record.inputs.to_json())},
        {"tune.metrics", to_text(metrics)}};
    if (!learner.python_definitions().empty())
        metadata["tune.python.definitions"] = learner.python_definitions();
    metadata["tune.epoch"] = std::to_string(record.progress.epoch);
    return deferred(learner.weights(), std::move(metadata));
}

std::optional<KeptWeights> best_weights(const CheckpointDirectory& directory,
                                        const Progress& progress, std::vector<std::string>& notes) {
    std::vector<std::pair<std::filesystem::path, std::int64_t>> candidates = {
        {directory.best(), progress.best_epoch}};
    for (const RankedEpoch& each : progress.best_epochs)
        if (each.epoch != progress.best_epoch)
            candidates.emplace_back(directory.best_of(each.epoch), each.epoch);
    for (const auto& [path, epoch] : candidates) {
        std::error_code ignored;
        if (!progress.best || !std::filesystem::exists(path, ignored)) continue;
        Result<Safetensors> file = read_weights(path);
        if (file) return KeptWeights{path, epoch, *std::move(file)};
        notes.push_back(file.error().text() + "; the weights of epoch " + std::to_string(epoch) +
                        " are passed over");
    }
    return std::nullopt;
}

void keep_best(const CheckpointDirectory* directory, std::int64_t count, Progress& progress) {
    if (count <= 1) {
        progress.best_epochs.clear();
        return;
    }
    if (!progress.best || !progress.best_epochs.empty()) return;
    progress.best_epochs = {{progress.best_epoch, *progress.best}};
    if (directory == nullptr) return;
    // A kill may have left the best of an epoch that this state does not know of yet.
    const Result<Safetensors> best = read_weights(directory->best());
    if (!best || !best->metadata().contains("tune.epoch") ||
        best->metadata().at("tune.epoch") != std::to_string(progress.best_epoch))
        return;
    std::error_code ignored;
    std::filesystem::create_hard_link(directory->best(), directory->best_of(progress.best_epoch),
                                      ignored);
}

Result<void> leave_model(const TrainConfig& config, const CheckpointDirectory& directory,
                         const Record& record, const Learner& learner,
                         const std::optional<KeptWeights>& best) {
    if (config.restore == Restore::kNothing) return {};
    if (config.restore == Restore::kLast || !best)
        return write_file_atomic(directory.model(), best_checkpoint(record, learner).bytes());
    TUNE_TRY(bytes, read_file(best->path, kFileBytesMax));
    return write_file_atomic(directory.model(), bytes);
}

}  // namespace tune::train
