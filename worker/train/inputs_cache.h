#pragma once
// Means, deviations and numbers of classes of a data set, kept from run to run: of a study's
// hundred trials one measures.

#include <functional>
#include <string>

#include "base/result.h"
#include "loader/dataset.h"
#include "worker/train/config/config.h"
#include "worker/train/inputs.h"

namespace tune::train {

/// What `measure` made of `chosen` the last time it was asked about the same data in the same way,
/// else what it makes now. Kept as a file in the folder of config.statistics_cache under a digest
/// of the data (the names, sizes and times of a local split's files, the index of any) and of all
/// that decides the numbers. Processes that ask at the same time wait for the first of them; a file
/// appears whole or not at all, and a damaged one is made anew. A folder that cannot be written is
/// no error. Errors: those of `measure`.
[[nodiscard]] Result<Inputs> cached_inputs(const TrainConfig& config,
                                           const loader::Dataset& dataset, Inputs chosen,
                                           const std::function<Result<Inputs>(Inputs)>& measure);

/// How a split of config.data is opened.
[[nodiscard]] loader::DatasetOptions dataset_options(const TrainConfig& config,
                                                     const std::string& split);

/// The columns of the train split, chosen and measured, unless that was done before. Errors: those
/// of choose_inputs() and measure_inputs().
[[nodiscard]] Result<Inputs> inputs_of_data(const TrainConfig& config);

}  // namespace tune::train
