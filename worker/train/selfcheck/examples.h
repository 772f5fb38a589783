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

/// A small network of this kind; nothing for one that needs a file of the user's.
[[nodiscard]] std::optional<Example> example_of(const std::string& model);

/// Writes images of 8x8 pixels with classes 0 to 9 as a data set with the splits train and val.
[[nodiscard]] Result<void> write_example_data(const std::filesystem::path& folder,
                                              std::int64_t samples);

}  // namespace tune::train
