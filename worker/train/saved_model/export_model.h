#pragma once
// What training made, as a folder that stock MLflow loads: a TorchScript module that takes samples
// as they are stored, with the normalisation inside.

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/result.h"
#include "loader/dataset.h"
#include "worker/train/checkpoint/safetensors.h"
#include "worker/train/config/config.h"
#include "worker/train/inputs.h"

namespace tune::train {

/// Where a model goes and what it is made of.
struct ModelOrigin {
    std::filesystem::path directory;
    std::int64_t epoch = 0;                        ///< whose weights these are
    std::vector<loader::ColumnInfo> columns = {};  ///< of the data, for types and shapes
};

/// Writes origin.directory: MLmodel, requirements.txt, conda.yaml, python_env.yaml,
/// data/model.pth, data/pickle_module_info.txt. The folder appears whole or not at all, and takes
/// the place of an empty one or of one with an MLmodel. The module gives scores of classes, values
/// in the label's own unit, probabilities (loss bce), or scores of each next token. `weights`: as
/// in best.safetensors. Computes on the CPU; any thread. Errors: kInvalidParameterValue for another
/// folder there or weights of another model, kInternalError with what the disk or LibTorch says.
[[nodiscard]] Result<void> export_model(const TrainConfig& config, const Inputs& inputs,
                                        const Safetensors& weights, const ModelOrigin& origin);

}  // namespace tune::train
