#pragma once
// What the files of a checkpoint directory hold.
//
//   last.safetensors  model.*, optimizer.*; metadata: tune.config, tune.inputs, tune.state
//   previous.safetensors  the one before
//   best.safetensors  the weights of the best epoch under the names of torch.nn.Sequential, so that
//                     `model.load_state_dict(load_file(path))` works; metadata: tune.python (the
//                     model as Python source), tune.inputs, tune.metrics, tune.epoch
//   best-epoch-N.safetensors  the same of each of several best epochs; best.safetensors is then
//                     another name of one of them

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "worker/train/checkpoint/safetensors.h"
#include "worker/train/collective/collective.h"
#include "worker/train/config/config.h"
#include "worker/train/inputs.h"
#include "worker/train/learner.h"
#include "worker/train/progress.h"
#include "worker/train/recorder.h"

namespace tune::train {

/// What last.safetensors holds besides tensors.
struct Record {
    Progress progress;
    Inputs inputs;
};

/// The checkpoint to go on from: last.safetensors; where that is damaged and previous.safetensors
/// is whole, the latter, with a warning on stderr if `talks`; empty when there is neither. A
/// checkpoint is whole when it can be parsed, its state can be read, and the tensors have the
/// xxh3_64 that its metadata name. Cost: reads the file.
[[nodiscard]] std::string usable_checkpoint(const CheckpointDirectory& directory, bool talks);

/// A file that rank 0 alone need be able to read. A collective. Errors: those of the file, and of
/// Collective.
[[nodiscard]] Result<Safetensors> read_on_all_ranks(Collective& collective,
                                                    const std::filesystem::path& path);

/// Errors: kDataLoss for a file that is not such a checkpoint, kInvalidParameterValue when it is
/// of another training run than `config` describes.
[[nodiscard]] Result<Record> read_record(const TrainConfig& config, const Safetensors& file);

/// What a run that starts from another one's last.safetensors begins with: its inputs, and its
/// epochs as epochs behind it. The network and the data must be the same; how it is trained (rates,
/// batch size, dropout, seed, ...) may differ. Errors as read_record.
[[nodiscard]] Result<Record> read_parent(const TrainConfig& config, const Safetensors& file);

/// last.safetensors as of now. Cost: one copy of all tensors; digest and bytes are made by whoever
/// asks for them.
[[nodiscard]] FileBytes last_checkpoint(const TrainConfig& config, const Record& record,
                                        const Learner& learner);

/// The same of best.safetensors.
[[nodiscard]] FileBytes best_checkpoint(const Record& record, const Learner& learner);

/// Weights of one epoch that are kept in a file.
struct KeptWeights {
    std::filesystem::path path;
    std::int64_t epoch = 0;
    Safetensors file;
};

/// Those of the best epoch, or, where their file is damaged or gone, of the next best that is kept;
/// nothing when there is none. Each file that is passed over is a sentence in `notes`. Cost: reads
/// the file.
[[nodiscard]] std::optional<KeptWeights> best_weights(const CheckpointDirectory& directory,
                                                      const Progress& progress,
                                                      std::vector<std::string>& notes);

/// After a run was resumed: the best epochs that it keeps are `count`, whatever it kept before.
void keep_best(const CheckpointDirectory* directory, std::int64_t count, Progress& progress);

/// What config.restore asks for: model.safetensors in `directory`, with the weights of `best`, or,
/// where the last epoch's are asked for or nothing better is there, of the last one. Errors:
/// kInternalError with path and reason.
[[nodiscard]] Result<void> leave_model(const TrainConfig& config,
                                       const CheckpointDirectory& directory, const Record& record,
                                       const Learner& learner,
                                       const std::optional<KeptWeights>& best);

}  // namespace tune::train
