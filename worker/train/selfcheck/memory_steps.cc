// Whether a batch that does not fit is made smaller with the same result: memory is limited to less
// than a step of the whole batch takes, by LibTorch's own means on a GPU and by an allocator that
// refuses on the CPU.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "worker/train/device/device.h"
#include "worker/train/learner.h"
#include "worker/train/selfcheck/examples.h"
#include "worker/train/selfcheck/limited_memory.h"
#include "worker/train/selfcheck/steps.h"

namespace tune::train {
namespace {

constexpr int kSteps = 3;

/// What became of a few steps.
struct Trained {
    std::int64_t parts = 1;
    std::vector<float> weights;
    float loss = 0;
    std::int64_t peak_bytes = 0;   ///< of the device
    std::int64_t fixed_bytes = 0;  ///< what is held between two steps
};

/// Rows of images whose activations take far more than the weights.
Example large_batch(bool cuda) {
    Example example = *example_of("mlp");
    example.config.width = cuda ? 1024 : 256;
    example.config.dropout = 0.3;
    const Samples few = example.samples;
    for (int i = 1; i < (cuda ? 2048 : 64); ++i) {
        example.samples.features.insert(example.samples.features.end(), few.features.begin(),
                                        few.features.end());
        example.samples.classes.insert(example.samples.classes.end(), few.classes.begin(),
                                       few.classes.end());
        example.samples.count += few.count;
    }
    return example;
}

Result<Trained> trained(const Example& example, Device& device) {
    TUNE_TRY(learner, Learner::make(example.config, example.inputs, nullptr, &device));
    Trained result;
    device.reset_peak();
    for (int step = 0; step < kSteps; ++step) {
        TUNE_TRY(loss, learner->train(example.samples, step, 1e-3));
        result.loss = loss;
    }
    device.synchronize();
    result.peak_bytes = device.memory().peak;
    result.fixed_bytes = device.memory().allocated;
    result.parts = learner->parts();
    for (const TensorBytes& tensor : learner->weights()) {
        const std::size_t begin = result.weights.size();
        result.weights.resize(begin + tensor.data.size() / sizeof(float));
        std::memcpy(result.weights.data() + begin, tensor.data.data(), tensor.data.size());
    }
    return result;
}

/// The second run, with less memory than the first one took.
Result<Trained> trained_with_less(const Example& example, Device& device, const Trained& whole,
                                  bool cuda) {
    if (!cuda) {
        LimitedMemory& memory = LimitedMemory::install();
        memory.limit = example.samples.features.size() * sizeof(float);  // weights are no larger
        auto result = trained(example, device);
        memory.limit = SIZE_MAX;
        return result;
    }
    device.release_cached();
    const double limit = static_cast<double>(whole.fixed_bytes) +
                         0.5 * static_cast<double>(whole.peak_bytes - whole.fixed_bytes);
    device.limit_memory(limit / static_cast<double>(device.memory().total));
    auto result = trained(example, device);
    device.limit_memory(1.0);
    return result;
}

}  // namespace

Result<CheckResult> check_out_of_memory(const CheckContext& context) {
    TUNE_TRY(device, open_device(context.cuda ? DeviceKind::kCuda : DeviceKind::kCpu, 0));
    const Example example = large_batch(context.cuda);
    TUNE_TRY(whole, trained(example, *device));
    if (whole.parts != 1) return check_failed("the whole batch does not fit to begin with");
    TUNE_TRY(cut, trained_with_less(example, *device, whole, context.cuda));
    if (cut.parts < 2) return check_failed("the batch fits into memory that is too small for it");
    double largest = 0.0;
    for (std::size_t i = 0; i < whole.weights.size(); ++i)
        largest =
            std::max(largest, std::abs(static_cast<double>(whole.weights[i] - cut.weights[i])));
    // A gradient that is next to nothing has a sign by chance, and AdamW moves by the rate.
    if (!(largest <= 2.0 * kSteps * 1e-3) || !(std::abs(whole.loss - cut.loss) < 1e-3f))
        return check_failed("in " + std::to_string(cut.parts) + " parts the loss is " +
                            std::to_string(cut.loss) + ", of the whole batch " +
                            std::to_string(whole.loss) + ", and weights differ by up to " +
                            std::to_string(largest));
    return check_ok("too large a batch was cut, with the same loss; parts",
                    static_cast<double>(cut.parts), "parts");
}

}  // namespace tune::train
