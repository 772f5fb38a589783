#pragma once
// What the two files of a checkpoint directory hold.
//
//   last.safetensors  model.*, optimizer.*; metadata: tune.config, tune.inputs, tune.state
//   best.safetensors  the weights of the best epoch under the names of torch.nn.Sequential, so that
//                     `model.load_state_dict(load_file(path))` works; metadata: tune.python (the
//                     model as Python source), tune.inputs, tune.metrics

#include <string>

#include "base/result.h"
#include "worker/train/checkpoint/safetensors.h"
#include "worker/train/config/config.h"
#include "worker/train/inputs.h"
#include "worker/train/learner.h"
#include "worker/train/progress.h"

namespace tune::train {

/// What last.safetensors holds besides tensors.
struct Record {
    Progress progress;
    Inputs inputs;
};

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

}  // namespace tune::train
