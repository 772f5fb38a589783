#pragma once
// What validation measures: one line of a table a metric. No LibTorch.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "worker/train/config/config.h"
#include "worker/train/inputs.h"

namespace tune::train {

/// Sums over samples (for a language over tokens), to be divided by how many there were.
struct Evaluation {
    double loss = 0.0;
    std::int64_t correct = 0;     ///< classes and tokens
    std::int64_t correct5 = 0;    ///< the right one is among the five likeliest
    double absolute_error = 0.0;  ///< values, in the label's own unit
    double squared_error = 0.0;
    std::int64_t count = 0;

    /// As numbers that add up, e.g. over ranks.
    static constexpr std::size_t kSums = 6;
    [[nodiscard]] std::array<double, kSums> numbers() const;
    [[nodiscard]] static Evaluation from_numbers(const std::array<double, kSums>& numbers);
};

struct Metric {
    const char* name;  ///< reported as "val_NAME"
    bool classes;      ///< for which tasks it is
    bool values;
    bool language;
    double (*value)(const Evaluation& sums);
};

/// accuracy, top5, perplexity, mae, rmse.
[[nodiscard]] std::span<const Metric> metrics();

/// The metrics of this run, in order: those that config.metrics names, else the usual one of the
/// task. Errors: kInvalidParameterValue, listing those that the task has.
[[nodiscard]] Result<std::vector<const Metric*>> chosen_metrics(const TrainConfig& config,
                                                                const Inputs& inputs);

}  // namespace tune::train
