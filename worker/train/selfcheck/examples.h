#pragma once
// Small problems that can be learnt, for the checks.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "worker/train/config/config.h"
#include "worker/train/inputs.h"

namespace tune::train {

/// A model, what it reads, and one batch of it.
struct Example {
    TrainConfig config;
    Inputs inputs;
    Samples samples;
};

/// The names that --model knows.
[[nodiscard]] std::vector<std::string> model_names();

/// A small network of this kind. `module`: the file of the model torchscript, for which there is
/// nothing without one.
[[nodiscard]] std::optional<Example> example_of(const std::string& model,
                                                const std::string& module = {});

/// Writes a TorchScript module for these images, as a user would give it. Errors: kInternalError
/// with LibTorch's text.
[[nodiscard]] Result<void> write_example_module(const std::string& path);

/// Writes images of 8x8 pixels with classes 0 to 9 as a data set with the splits train and val.
[[nodiscard]] Result<void> write_example_data(const std::filesystem::path& folder,
                                              std::int64_t samples);

}  // namespace tune::train
