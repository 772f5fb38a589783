#include "worker/train/selfcheck/steps.h"

namespace tune::train {

using std::chrono::seconds;

const std::vector<CheckStep>& check_steps() {
    static const std::vector<CheckStep> steps = {
        {"device", "the device is there; NVML and LibTorch agree on it", seconds(120),
         check_device},
        {"copies", "copies to the device and back hold the same bytes", seconds(120), check_copies},
        {"models", "every model with every optimizer against a reference", seconds(360),
         check_models},
        {"precision", "bf16 and fp16 against float32", seconds(120), check_precision},
        {"graph", "captured steps equal steps one by one", seconds(120), check_graph},
        {"resume", "a killed run resumes to the same bytes", seconds(240), check_resume},
        {"memory", "a batch that is too large is made smaller", seconds(240), check_out_of_memory},
        {"reducer", "gradients over one rank are those of no ranks", seconds(120), check_reducer},
        {"ranks", "two ranks train what one would", seconds(240), check_ranks},
        {"packed", "two processes side by side, and a pool", seconds(240), check_packed},
        {"data", "time that steps wait for data", seconds(120), check_data_wait},
    };
    return steps;
}

}  // namespace tune::train
