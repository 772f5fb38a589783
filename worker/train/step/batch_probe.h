#pragma once
// Measures batch sizes before training begins.

#include <cstdint>

#include "base/result.h"
#include "worker/train/collective/collective.h"
#include "worker/train/config/config.h"
#include "worker/train/inputs.h"

namespace tune::train {

class Device;

/// The subcommand of tune-trainer, not for people, whose process tries one size.
inline constexpr const char* kProbeCommand = "probe-batch";
/// Its whole work: what to try comes as JSON on stdin, what came of it goes to stdout. Returns the
/// exit code.
[[nodiscard]] int answer_batch_probe();

/// The batch size that config.find_batch_size asks for, from config.batch_size upwards, on
/// `device`. Each size is tried by a process of its own with made-up samples, so that neither
/// fragments nor a failure reach the run; with `talks` a line for each goes to stderr. A
/// collective: each rank tries its part of a size, and the slowest and the fullest one count.
/// Errors: kResourceExhausted when one sample does not fit, kInternalError when a process cannot be
/// started or fails otherwise. Cost: a second or so for each size, more on a GPU.
[[nodiscard]] Result<std::int64_t> probe_batch_size(const TrainConfig& config, const Inputs& inputs,
                                                    Collective& collective, const Device& device,
                                                    bool talks);

}  // namespace tune::train
