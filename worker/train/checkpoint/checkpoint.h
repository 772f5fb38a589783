#pragma once
// What the two files of a checkpoint directory hold.
//
//   last.safetensors  model.*, optimizer.*; metadata: tune.config, tune.inputs, tune.state
//   previous.safetensors  the one before
//   best.safetensors  the weights of the best epoch under the names of torch.nn.Sequential, so that
//                     `model.load_state_dict(load_file(path))` works; metadata: tune.python (the
//                     model as Python source), tune.inputs, tune.metrics

#include <filesystem>
#include <string>

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

/// The bytes of last.safetensors. Cost: one copy of all tensors.
[[nodiscard]] std::string last_checkpoint(const TrainConfig& config, const Record& record,
                                          const Learner& learner);

/// The bytes of best.safetensors.
[[nodiscard]] std::string best_checkpoint(const Record& record, const Learner& learner);

/// What config.restore asks for: model.safetensors in `directory`, with the weights of the best
/// epoch or the last one. Errors: kInternalError with path and reason.
[[nodiscard]] Result<void> leave_model(const TrainConfig& config,
                                       const CheckpointDirectory& directory, const Record& record,
                                       const Learner& learner);

}  // namespace tune::train
