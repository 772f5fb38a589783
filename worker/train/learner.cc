// The one place where steps and LibTorch meet. Every call is wrapped: LibTorch's exceptions become
// errors, and failed allocations are recognised by their texts, since they are plain errors there.
// Dropout and initialisation draw from (seed, step), never from LibTorch's global generator, so a
// resumed run repeats the interrupted one bit by bit.

#include "worker/train/learner.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/stack.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/check.h"
#include "worker/train/collective/gradients.h"
#include "worker/train/device/device.h"
#include "worker/train/models/start_from.h"
#include "worker/train/training.h"

namespace tune::train {
namespace {

Error out_of_memory(const std::string& detail) {
    return Error{Code::kResourceExhausted,
                 "out of memory; a smaller batch-size or width needs less. " + detail};
}

/// LibTorch reports a failed CPU allocation as a plain error with one of these texts.
bool is_out_of_memory(const std::string& text) {
    return text.find("can't allocate memory") != std::string::npos ||
           text.find("not enough memory") != std::string::npos ||
           text.find("out of memory") != std::string::npos;
}

std::string first_line(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

/// Runs `f`, which returns a Result, and turns LibTorch's exceptions into errors.
template <class F>
auto guarded(F f) -> decltype(f()) {
    try {
        return f();
    } catch (const c10::OutOfMemoryError& error) {
        return out_of_memory(first_line(error.what_without_backtrace()));
    } catch (const c10::Error& error) {
        const std::string text = error.what_without_backtrace();
        if (is_out_of_memory(text)) return out_of_memory(first_line(text));
        return Error{Code::kInternalError, "LibTorch: " + first_line(text)};
    } catch (const std::bad_alloc&) {
        return out_of_memory("");
    } catch (const RankLost& lost) {
        return lost.error();
    } catch (const std::exception& error) {
        return Error{Code::kInternalError, std::string("LibTorch: ") + error.what()};
    }
}

void set_threads(std::int64_t threads) {
    at::set_num_threads(static_cast<int>(threads));
    static const bool once = [] {
        at::set_num_interop_threads(1);  // may be called once in a process
        return true;
    }();
    static_cast<void>(once);
}

/// For the whole process, so a choice is never taken back: others may train beside this run.
void choose_kernels(const TrainConfig& config, const Device* device) {
    at::Context& context = at::globalContext();
    if (config.deterministic) {
        context.setDeterministicAlgorithms(true, /*warn_only=*/false);
        context.setDeterministicCuDNN(true);
        context.setBenchmarkCuDNN(false);
    }
    if (device == nullptr || device->torch_device().is_cpu()) return;
    // Shapes hardly change, so trying each convolution's algorithms once pays.
    if (!context.deterministicAlgorithms()) context.setBenchmarkCuDNN(true);
    if (config.precision == Precision::kTf32) {
        context.setAllowTF32CuBLAS(true);
        context.setAllowTF32CuDNN(true);
    }
}

const char* dtype_name(const at::Tensor& tensor) {
    switch (tensor.scalar_type()) {
        case at::kFloat: return "F32";
        case at::kDouble: return "F64";
        case at::kHalf: return "F16";
        case at::kBFloat16: return "BF16";
        case at::kLong: return "I64";
        case at::kInt: return "I32";
        case at::kByte: return "U8";
        case at::kBool: return "BOOL";
        default: TUNE_CHECK(false, "a tensor of a type that checkpoints do not have");
    }
    return "";
}

Result<void> copy_from(const Safetensors& file, const std::string& name, at::Tensor tensor) {
    const TensorBytes* stored = file.find(name);
    const auto problem = [&](const std::string& what) {
        return Error{Code::kDataLoss, "tensor '" + name + "' " + what};
    };
    if (stored == nullptr) return problem("is missing");
    if (stored->dtype != dtype_name(tensor) || stored->shape != tensor.sizes().vec())
        return problem("has another type or shape than the model's");
    if (tensor.is_cpu() && tensor.is_contiguous()) {
        std::memcpy(tensor.mutable_data_ptr(), stored->data.data(), stored->data.size());
        return {};
    }
    const at::NoGradGuard no_grad;
    tensor.copy_(at::from_blob(const_cast<std::byte*>(stored->data.data()), tensor.sizes(),
                               tensor.scalar_type()));
    return {};
}

}  // namespace

class Learner::Impl {
public:
    Impl(const TrainConfig& config, std::unique_ptr<Training> training)
        : config_(config),
          seed_(static_cast<std::uint64_t>(config.seed)),
          training_(std::move(training)),
          parts_(config.accumulate) {
        wants_correct_ = training_->inputs().is_language() ? !config.metrics.empty() : true;
    }

    Result<void> train(const Samples& samples, std::int64_t step, double lr) {
        const StepOptions options{
            .lr = lr,
            .parts = parts_,
            .share = samples.share,
            .measures_noise = config_.noise_every > 0 && (step + 1) % config_.noise_every == 0};
        TUNE_TRY(loss, training_->step(training_->view(samples),
                                       {.training = true,
                                        .seed = seed_,
                                        .step = step,
                                        .first_row = samples.share.first,
                                        .row_stride = samples.share.stride},
                                       options));
        losses_.push_back(std::move(loss));
        if (options.measures_noise)
            if (auto noise = training_->take_noise()) noise_.push_back(*std::move(noise));
        return {};
    }

    std::vector<NoiseSample> take_noise() {
        std::vector<NoiseSample> samples;
        for (const NoiseTensors& noise : std::exchange(noise_, {})) {
            NoiseSample sample;
            for (std::size_t i = 0; i < noise.parts.size(); ++i) {
                sample.small_square += noise.parts[i].item<double>();
                sample.big_batch += static_cast<double>(noise.part_rows[i]);
            }
            sample.parts = static_cast<std::int64_t>(noise.parts.size());
            sample.big_square = noise.whole.item<double>();
            samples.push_back(sample);
        }
        return samples;
    }

    [[nodiscard]] std::int64_t parts() const { return parts_; }
    void set_parts(std::int64_t parts) { parts_ = parts; }
    /// Into how many parts a batch is cut that nothing is learnt from.
    [[nodiscard]] std::int64_t evaluation_parts() const {
        return std::max(parts_, evaluation_parts_);
    }
    /// Where the ranks' parts must be the same ones, those of evaluations are each rank's own.
    void cut_evaluations(std::int64_t parts) {
        (training_->forward_is_shared() ? evaluation_parts_ : parts_) = parts;
    }
    [[nodiscard]] const TrainConfig& config() const { return config_; }

    std::vector<double> take_losses() {
        std::vector<double> values;
        if (losses_are_at_hand() || losses_.empty()) {
            values.reserve(losses_.size());
            for (const at::Tensor& loss : losses_) values.push_back(loss.item<double>());
        } else {
            const at::Tensor all = at::stack(losses_).cpu().to(at::kDouble);  // one wait for all
            const double* first = all.const_data_ptr<double>();
            values.assign(first, first + all.numel());
        }
        losses_.clear();
        return values;
    }

    [[nodiscard]] bool losses_are_at_hand() const {
        return training_->leaves().empty() || training_->leaves().front().is_cpu();
    }

    void evaluate(const Samples& samples, Evaluation& sums) const {
        const at::NoGradGuard no_grad;
        const BatchTensors whole = training_->placed(training_->view(samples));
        const std::int64_t parts = evaluation_parts();
        const std::int64_t rows_of_part = (whole.rows + parts - 1) / parts;
        for (std::int64_t first = 0; first < whole.rows; first += rows_of_part)
            evaluate_part(rows_of_part >= whole.rows
                              ? whole
                              : whole.slice(first, std::min(rows_of_part, whole.rows - first)),
                          sums);
    }

    void evaluate_part(const BatchTensors& batch, Evaluation& sums) const {
        const at::Tensor output = training_->output(batch, {}).contiguous();
        const at::Tensor loss = training_->task().loss(output, batch.target);
        const std::int64_t count = batch.rows * training_->inputs().targets_of_sample();
        sums.loss += loss.item<double>() * static_cast<double>(count);
        sums.count += count;
        if (wants_correct_)
            training_->task().measure(narrowed(output), narrowed(batch.target), sums);
    }

    /// As metrics are counted: on the CPU, and values as float32.
    static at::Tensor narrowed(const at::Tensor& tensor) {
        const at::Tensor here = tensor.cpu().contiguous();
        return here.is_floating_point() ? here.to(at::kFloat) : here;
    }

    /// Views where tensors lie in memory as files hold them, else of copies that are kept here.
    std::vector<TensorBytes> bytes_of(const std::vector<NamedTensor>& tensors) {
        copies_.clear();
        std::vector<TensorBytes> list;
        for (const NamedTensor& named : tensors) {
            at::Tensor tensor = named.tensor;
            if (!tensor.is_cpu() || !tensor.is_contiguous()) {
                tensor = tensor.detach().cpu().contiguous();
                copies_.push_back(tensor);
            }
            list.push_back({.name = named.name,
                            .dtype = dtype_name(tensor),
                            .shape = tensor.sizes().vec(),
                            .data = {static_cast<const std::byte*>(tensor.const_data_ptr()),
                                     tensor.nbytes()}});
        }
        return list;
    }

    /// What a state_dict holds.
    [[nodiscard]] std::vector<NamedTensor> model_state(const std::string& prefix) const {
        std::vector<NamedTensor> list;
        for (const auto* tensors :
             {&training_->model().parameters(), &training_->model().buffers()})
            for (const NamedTensor& each : *tensors)
                list.push_back({prefix + each.name, each.tensor});
        return list;
    }

    [[nodiscard]] std::vector<NamedTensor> optimizer_state() const {
        std::vector<NamedTensor> list;
        for (const NamedTensor& each : training_->optimizer().state())
            list.push_back({"optimizer." + each.name, each.tensor});
        for (const NamedTensor& each : training_->scaler_state()) list.push_back(each);
        return list;
    }

    Result<void> share_buffers(Collective& collective) {
        for (const NamedTensor& buffer : training_->model().buffers()) {
            const TensorBytes own = bytes_of({buffer}).front();
            std::string bytes(reinterpret_cast<const char*>(own.data.data()), own.data.size());
            TUNE_TRY_VOID(collective.broadcast(bytes, 0));
            const at::NoGradGuard no_grad;
            buffer.tensor.copy_(
                at::from_blob(bytes.data(), buffer.tensor.sizes(), buffer.tensor.scalar_type()));
        }
        return {};
    }

    [[nodiscard]] Training& training() { return *training_; }
    [[nodiscard]] const Training& training() const { return *training_; }

private:
    const TrainConfig config_;
    const std::uint64_t seed_;
    std::unique_ptr<Training> training_;
    std::int64_t parts_;
    std::int64_t evaluation_parts_ = 1;
    std::vector<NoiseTensors> noise_;
    bool wants_correct_ = true;       ///< counting over a vocabulary takes time
    std::vector<at::Tensor> losses_;  ///< of steps that nobody has asked about yet
    std::vector<at::Tensor> copies_;  ///< what bytes_of() refers to
};

Learner::Learner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Learner::~Learner() = default;

Result<std::unique_ptr<Learner>> Learner::make(const TrainConfig& config, const Inputs& inputs,
                                               Collective* collective, Device* device) {
    return guarded([&]() -> Result<std::unique_ptr<Learner>> {
        set_threads(config.threads);
        choose_kernels(config, device);
        TUNE_TRY(training, Training::make(config, inputs, device));
        if (collective != nullptr && collective->size() > 1) {
            std::vector<std::string> names;
            for (const NamedTensor& each : training->model().parameters())
                names.push_back(each.name);
            TUNE_TRY(shared, make_gradients(*collective, training->leaves(), names));
            training->set_backward(std::move(shared));
            TUNE_TRY(sums, make_rank_sums(*collective));
            training->set_rank_sums(std::move(sums));
        }
        return std::unique_ptr<Learner>(
            new Learner(std::make_unique<Impl>(config, std::move(training))));
    });
}

Result<float> Learner::train(const Samples& samples, std::int64_t step, double lr) {
    TUNE_TRY_VOID(train_later(samples, step, lr));
    TUNE_TRY(losses, take_losses());
    return static_cast<float>(losses.back());
}

Result<void> Learner::train_later(const Samples& samples, std::int64_t step, double lr) {
    while (true) {
        Result<void> done =
            guarded([&]() -> Result<void> { return impl_->train(samples, step, lr); });
        if (done || done.error().code != Code::kResourceExhausted) return done;
        const bool can_be_done_again = impl_->training().backward().start_anew();
        // Ranks that wait in a layer for one that starts its step anew would not meet it again.
        if (!can_be_done_again || impl_->training().forward_is_shared() ||
            impl_->parts() >= samples.count)
            return done;
        impl_->set_parts(std::min(2 * impl_->parts(), samples.count));
    }
}

std::int64_t Learner::parts() const {
    return impl_->parts();
}

void Learner::set_parts(std::int64_t parts) {
    impl_->set_parts(parts);
}

Result<void> Learner::begin_epoch(std::int64_t epoch, std::int64_t steps_per_epoch) {
    impl_->training().begin_epoch(epoch, steps_per_epoch);
    if (!impl_->training().leaves().empty()) return {};
    return Error{Code::kInvalidParameterValue, "freeze: '" + impl_->config().freeze +
                                                   "' leaves nothing to train in epoch " +
                                                   std::to_string(epoch)};
}

Result<std::string> Learner::start_from_file() {
    return guarded([&]() -> Result<std::string> {
        return start_from(impl_->training().model(), impl_->config());
    });
}

Result<std::vector<NoiseSample>> Learner::take_noise() {
    return guarded([&]() -> Result<std::vector<NoiseSample>> { return impl_->take_noise(); });
}

Result<std::vector<double>> Learner::take_losses() {
    return guarded([&]() -> Result<std::vector<double>> { return impl_->take_losses(); });
}

bool Learner::losses_are_at_hand() const {
    return impl_->losses_are_at_hand();
}

Result<void> Learner::evaluate(const Samples& samples, Evaluation& sums) {
    while (true) {
        Evaluation own = sums;
        Result<void> done = guarded([&]() -> Result<void> {
            impl_->evaluate(samples, own);
            return {};
        });
        if (done) sums = own;
        if (done || done.error().code != Code::kResourceExhausted ||
            impl_->evaluation_parts() >= samples.count)
            return done;
        impl_->cut_evaluations(std::min(2 * impl_->evaluation_parts(), samples.count));
    }
}

Result<void> Learner::share_buffers(Collective& collective) {
    return guarded([&]() -> Result<void> { return impl_->share_buffers(collective); });
}

std::vector<TensorBytes> Learner::weights() const {
    return impl_->bytes_of(impl_->model_state(""));
}

std::vector<TensorBytes> Learner::state() const {
    std::vector<NamedTensor> list = impl_->model_state("model.");
    for (NamedTensor& each : impl_->optimizer_state()) list.push_back(std::move(each));
    return impl_->bytes_of(list);
}

Result<void> Learner::load_state(const Safetensors& file) {
    for (const NamedTensor& each : impl_->model_state("model."))
        TUNE_TRY_VOID(copy_from(file, each.name, each.tensor));
    for (const NamedTensor& each : impl_->optimizer_state()) {
        // Older checkpoints do not have them.
        if (each.name == std::string("optimizer.") + kSkippedSteps &&
            file.find(each.name) == nullptr)
            continue;
        TUNE_TRY_VOID(copy_from(file, each.name, each.tensor));
    }
    return {};
}

Result<void> Learner::continue_from(const Safetensors& file) {
    for (const NamedTensor& each : impl_->model_state("model."))
        TUNE_TRY_VOID(copy_from(file, each.name, each.tensor));
    for (const NamedTensor& each : impl_->optimizer_state())
        if (file.find(each.name) != nullptr) TUNE_TRY_VOID(copy_from(file, each.name, each.tensor));
    return {};
}

std::int64_t Learner::parameter_count() const {
    std::int64_t count = 0;
    for (const NamedTensor& parameter : impl_->training().model().parameters())
        count += parameter.tensor.numel();
    return count;
}

const std::string& Learner::python_source() const {
    return impl_->training().model().python_source();
}

const std::string& Learner::python_definitions() const {
    return impl_->training().model().python_definitions();
}

Training& Learner::training() {
    return impl_->training();
}

}  // namespace tune::train
