// The order within a step: gradients of all parts, unscaled; norms for the noise; clipping; update.
// Nothing before the update changes a parameter, so a step that fails can be done again.

#include "worker/train/training.h"

#include <ATen/ops/add.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "worker/train/rules/freezing.h"
#include "worker/train/step/clipping.h"
#include "worker/train/step/step_trace.h"

namespace tune::train {
namespace {

/// Gradients are handed over, not accumulated into .grad: no zeroing, no copy.
class OwnBackward final : public BackwardPass {
public:
    explicit OwnBackward(std::vector<at::Tensor> leaves) : leaves_(std::move(leaves)) {}

    Result<std::vector<at::Tensor>> backward(const at::Tensor& loss) override {
        std::vector<at::Tensor> gradients = own(loss);
        for (std::size_t i = 0; i < gradients.size(); ++i) {
            if (!sums_.empty()) gradients[i] = at::add(gradients[i], sums_[i]);
            if (gradients[i].strides() != leaves_[i].strides())
                gradients[i] = leaves_[i].is_contiguous()
                                   ? gradients[i].contiguous()
                                   : gradients[i].contiguous(at::MemoryFormat::ChannelsLast);
        }
        sums_.clear();
        is_begun_ = false;
        return gradients;
    }

    void accumulate(const at::Tensor& loss) override {
        std::vector<at::Tensor> gradients = own(loss);
        for (std::size_t i = 0; i < sums_.size(); ++i)
            gradients[i] = at::add(gradients[i], sums_[i]);
        sums_ = std::move(gradients);
    }

    void set_leaves(const std::vector<at::Tensor>& leaves) override {
        leaves_ = leaves;
        sums_.clear();
    }

    void measure_parts(bool wanted) override { measures_ = wanted; }
    [[nodiscard]] bool start_anew() override {
        measures_ = false;
        sums_.clear();
        is_begun_ = false;
        return true;
    }
    [[nodiscard]] std::vector<at::Tensor> part_squares() const override { return squares_; }

private:
    std::vector<at::Tensor> own(const at::Tensor& loss) {
        const Span span("backward");
        std::vector<at::Tensor> gradients = torch::autograd::grad({loss}, leaves_);
        if (!is_begun_) squares_.clear();
        is_begun_ = true;
        if (measures_) squares_.push_back(squared_norm(gradients));
        return gradients;
    }

    bool measures_ = false;
    bool is_begun_ = false;  ///< a part of this step was computed
    std::vector<at::Tensor> squares_;
    std::vector<at::Tensor> leaves_;
    std::vector<at::Tensor> sums_;  ///< of the parts of a step so far
};

/// Steps before one is captured: libraries choose their algorithms in the first ones.
constexpr int kWarmUpSteps = 5;

/// Layers hold the same tensors as the lists: only where these lie changes.
void move_to(Model& model, const Device& device) {
    const at::Device where = device.torch_device();
    if (where.is_cpu()) return;
    for (const auto* tensors : {&model.parameters(), &model.buffers()})
        for (const NamedTensor& each : *tensors) {
            at::Tensor moved = each.tensor.detach().to(where);
            if (device.prefers_channels_last() && moved.dim() == 4)
                moved = moved.contiguous(at::MemoryFormat::ChannelsLast);
            each.tensor.set_data(moved);
        }
}

std::vector<std::string> parameter_names(const Model& model) {
    std::vector<std::string> names;
    for (const NamedTensor& each : model.parameters()) names.push_back(each.name);
    return names;
}

/// Before an optimizer takes over the type.
void widen(const Model& model) {
    for (const auto* tensors : {&model.parameters(), &model.buffers()})
        for (const NamedTensor& each : *tensors)
            if (each.tensor.is_floating_point())
                at::Tensor(each.tensor).set_data(each.tensor.detach().to(at::kDouble));
}

/// Before anything takes over the order in memory.
void lay_channels_last(const Model& model) {
    for (const NamedTensor& each : model.parameters())
        if (each.tensor.dim() == 4)
            at::Tensor(each.tensor)
                .set_data(each.tensor.detach().contiguous(at::MemoryFormat::ChannelsLast));
}

template <class T>
at::Tensor view_of(const CacheLineVector<T>& values, std::vector<std::int64_t> shape,
                   at::ScalarType type) {
    return at::from_blob(const_cast<T*>(values.data()), shape, type);
}

at::ScalarType scalar_type_of(loader::Dtype dtype) {
    switch (dtype) {
        case loader::Dtype::kUint8: return at::kByte;
        case loader::Dtype::kInt8: return at::kChar;
        case loader::Dtype::kUint16: return at::kUInt16;
        case loader::Dtype::kInt16: return at::kShort;
        case loader::Dtype::kUint32: return at::kUInt32;
        case loader::Dtype::kInt32: return at::kInt;
        case loader::Dtype::kUint64: return at::kUInt64;
        case loader::Dtype::kInt64: return at::kLong;
        case loader::Dtype::kFloat16:
        case loader::Dtype::kFloat32:
        case loader::Dtype::kFloat64: break;
    }
    TUNE_CHECK(false, "features are kept as stored in a type that is no integer");
    return at::kByte;
}

}  // namespace

BatchTensors BatchTensors::slice(std::int64_t first, std::int64_t count) const {
    return {x.narrow(0, first, count), target.narrow(0, first, count), count};
}

Result<std::unique_ptr<Training>> Training::make(const TrainConfig& config, const Inputs& inputs,
                                                 Device* device) {
    TUNE_TRY(model, make_model(config, inputs));
    TUNE_TRY(unfreeze, parse_unfreezing(config.unfreeze));
    TUNE_TRY_VOID(check_found({config.freeze, std::move(unfreeze)}, parameter_names(*model)));
    if (config.precision == Precision::kFloat64) widen(*model);
    if (config.channels_last) lay_channels_last(*model);
    if (device != nullptr) move_to(*model, *device);
    return std::unique_ptr<Training>(new Training(config, inputs, std::move(model), device));
}

Training::Training(const TrainConfig& config, const Inputs& inputs, std::unique_ptr<Model> model,
                   Device* device)
    : config_(config),
      inputs_(inputs),
      type_(config.precision == Precision::kFloat64 ? at::kDouble : at::kFloat),
      model_(std::move(model)),
      task_(make_task(config, inputs)),
      optimizer_(make_optimizer(config, model_->parameters())),
      device_(device) {
    const at::Device where = device == nullptr ? at::Device(at::kCPU) : device->torch_device();
    if (config.precision == Precision::kFloat16) scaler_.emplace(where);
    if (!where.is_cpu()) engine_ = device->step_engine(kWarmUpSteps);
    for (const NamedTensor& parameter : model_->parameters()) leaves_.push_back(parameter.tensor);
    backward_ = std::make_unique<OwnBackward>(leaves_);
}

void Training::set_backward(std::unique_ptr<BackwardPass> backward) {
    backward_ = std::move(backward);
    engine_.reset();  // what other ranks do cannot be captured here
}

BatchTensors Training::placed(const BatchTensors& batch) const {
    BatchTensors here = batch;
    if (device_ != nullptr) {
        here.x = device_->upload(batch.x);
        here.target = device_->upload(batch.target);
    }
    if (inputs_.is_tokens()) here.x = here.x.to(at::kLong);
    if (inputs_.is_language()) here.target = here.target.to(at::kLong);
    if (here.target.is_floating_point()) here.target = here.target.to(type_);
    return here;
}

BatchTensors Training::view(const Samples& samples) const {
    const std::int64_t rows = samples.count;
    const std::int64_t row = inputs_.row_elements();
    BatchTensors batch{.x = {}, .target = {}, .rows = rows};
    if (inputs_.keeps_bytes)
        batch.x = view_of(samples.bytes, {rows, row}, scalar_type_of(inputs_.stored));
    else if (inputs_.is_tokens())
        batch.x = view_of(samples.tokens, {rows, row}, at::kLong);
    else
        batch.x = view_of(samples.features, {rows, row}, at::kFloat);
    if (inputs_.is_language()) {
        batch.target = batch.x.narrow(1, 1, row - 1);
        batch.x = batch.x.narrow(1, 0, row - 1);
    } else if (inputs_.is_classification()) {
        batch.target = view_of(samples.classes, {rows}, at::kLong);
    } else {
        batch.target = view_of(samples.values, {rows, 1}, at::kFloat);
    }
    return batch;
}

at::Tensor Training::output(const BatchTensors& batch, const Pass& pass) const {
    std::optional<Autocast> autocast;
    if (has_16_bits(config_.precision))
        autocast.emplace(batch.x.device().type(), config_.precision);
    at::Tensor x = batch.x;
    if (x.scalar_type() == at::kByte) {
        // The arithmetic of read_samples(), where the bytes are.
        const InputColumn& column = inputs_.columns.front();
        x = x.to(at::kFloat)
                .sub_(static_cast<float>(column.mean))
                .mul_(static_cast<float>(column.scale));
    }
    if (x.is_floating_point()) x = x.to(type_);
    return model_->forward(x, pass).to(type_);
}

at::Tensor Training::loss(const BatchTensors& batch, const Pass& pass) const {
    const Span span("forward");
    return task_->loss(output(batch, pass), batch.target);
}

Result<at::Tensor> Training::gradients_of(const BatchTensors& batch, const Pass& pass,
                                          double weight, std::vector<at::Tensor>& gradients) {
    const at::Tensor mean = loss(batch, pass);
    const at::Tensor weighted = weight == 1.0 ? mean : at::mul(mean, weight);
    TUNE_TRY(computed, backward_->backward(scaler_ ? scaler_->scaled(weighted) : weighted));
    if (scaler_) scaler_->unscale(computed);
    gradients = std::move(computed);
    return mean.detach();
}

/// Each part counts by its rows. Parts are cut from the batch of all ranks, so that the rows of
/// part k together are those that one rank alone would have in it; a rank that has none of them
/// fills in with a row of no weight, since the others may wait for it in a forward pass.
Result<at::Tensor> Training::summed_gradients_of(const BatchTensors& batch, const Pass& pass,
                                                 const StepOptions& options, std::int64_t parts,
                                                 std::vector<at::Tensor>& gradients) {
    part_rows_.clear();
    const Share& share = options.share;
    const std::int64_t own_rows = share.stride == 1 ? batch.rows : share.rows;
    const std::int64_t all_rows = share.stride == 1 ? batch.rows : share.step_rows;
    const std::int64_t rows_of_part = (all_rows + parts - 1) / parts;
    // How many of this rank's rows are among the first `all` of the step.
    const auto own_before = [&](std::int64_t all) {
        return std::clamp<std::int64_t>((all - share.first + share.stride - 1) / share.stride, 0,
                                        own_rows);
    };
    at::Tensor mean;
    for (std::int64_t begin = 0; begin < all_rows; begin += rows_of_part) {
        const std::int64_t first = own_before(begin);
        const std::int64_t rows = own_before(begin + rows_of_part) - first;
        const std::int64_t place = std::min(first, batch.rows - 1);
        Pass part_pass = pass;
        part_pass.first_row += place * pass.row_stride;
        part_pass.rows = rows;
        model_->before_pass(part_pass, batch.x.device());
        part_rows_.push_back(rows);
        const double part = static_cast<double>(rows) / static_cast<double>(batch.rows);
        const at::Tensor own =
            at::mul(loss(batch.slice(place, std::max<std::int64_t>(rows, 1)), part_pass), part);
        mean = begin == 0 ? own.detach() : at::add(mean, own.detach());
        const double weight = share.weight();
        const at::Tensor weighted = weight == 1.0 ? own : at::mul(own, weight);
        const at::Tensor scaled = scaler_ ? scaler_->scaled(weighted) : weighted;
        if (begin + rows_of_part < all_rows) {
            backward_->accumulate(scaled);
            continue;
        }
        TUNE_TRY(computed, backward_->backward(scaled));
        gradients = std::move(computed);
    }
    if (scaler_) scaler_->unscale(gradients);
    return mean;
}

/// The parts' losses were weighted by their rows, and scaled for float16, which their norms show.
void Training::keep_noise(const std::vector<at::Tensor>& gradients, const StepOptions& options,
                          std::int64_t rows) {
    std::vector<at::Tensor> squares = backward_->part_squares();
    backward_->measure_parts(false);
    if (scaler_) return;
    NoiseTensors noise{.parts = {}, .part_rows = part_rows_, .whole = squared_norm(gradients)};
    if (backward_->measures_ranks()) {
        // Of this rank's share; a share of no rows has no gradient of its own.
        const double weight = options.share.weight();
        noise.part_rows.assign(weight > 0.0 ? 1 : 0, rows);
        for (std::size_t i = 0; i < noise.part_rows.size(); ++i)
            noise.parts.push_back(at::mul(squares.front(), 1.0 / (weight * weight)));
        noise_ = std::move(noise);
        return;
    }
    if (squares.size() < 2 || squares.size() != part_rows_.size()) return;
    for (std::size_t i = 0; i < squares.size(); ++i) {
        const double weight = static_cast<double>(rows) / static_cast<double>(part_rows_[i]);
        noise.parts.push_back(at::mul(squares[i], weight * weight));
    }
    noise_ = std::move(noise);
}

std::optional<NoiseTensors> Training::take_noise() {
    return std::exchange(noise_, std::nullopt);
}

bool Training::begin_epoch(std::int64_t epoch, std::int64_t steps_per_epoch) {
    if (config_.freeze.empty() && config_.lr_decay == 1.0) return false;
    const Freezing freezing{config_.freeze, parse_unfreezing(config_.unfreeze).value()};
    const std::vector<std::string> names = parameter_names(*model_);
    const std::vector<double> factors = layer_factors(names, config_.lr_decay);
    // Parameters that move alike are one group, in the order of the layers.
    std::vector<ParameterGroup> groups;
    for (std::size_t i = 0; i < names.size(); ++i) {
        const std::int64_t first = freezing.first_epoch(names[i]);
        if (first == kNever || first > epoch) continue;
        const std::int64_t first_step = first * steps_per_epoch;
        const bool same = !groups.empty() && groups.back().lr_factor == factors[i] &&
                          groups.back().first_step == first_step;
        if (!same) groups.push_back({.lr_factor = factors[i], .first_step = first_step});
        groups.back().members.push_back(i);
    }
    std::size_t count = 0;
    for (const ParameterGroup& group : groups) count += group.members.size();
    const bool changes = count != leaves_.size() || !groups_are_set_;
    if (changes) set_groups(std::move(groups));
    return changes;
}

void Training::set_groups(std::vector<ParameterGroup> groups) {
    groups_are_set_ = true;
    leaves_.clear();
    for (const NamedTensor& each : model_->parameters()) each.tensor.set_requires_grad(false);
    for (const ParameterGroup& group : groups)
        for (const std::size_t member : group.members) {
            const at::Tensor& tensor = model_->parameters()[member].tensor;
            tensor.set_requires_grad(true);
            leaves_.push_back(tensor);
        }
    if (!leaves_.empty()) backward_->set_leaves(leaves_);
    if (engine_) engine_->forget();
    optimizer_->set_groups(std::move(groups));
}

/// The same for a batch of the shape that is captured. Only gradients are: the update takes its
/// rate from the host, and is one kernel or two.
Result<at::Tensor> Training::captured_gradients_of(const BatchTensors& batch, const Pass& pass,
                                                   std::vector<at::Tensor>& gradients) {
    static_batch_.x.copy_(batch.x);
    static_batch_.target.copy_(batch.target);
    Result<void> done;
    engine_->run([&] {
        auto mean = gradients_of(static_batch_, pass, 1.0, static_gradients_);
        if (!mean) done = mean.error();
        if (mean) static_loss_ = *mean;
    });
    if (!done) return done.error();
    gradients = static_gradients_;
    return static_loss_.clone();  // the next step writes there again
}

bool Training::forward_is_shared() const {
    if (!rank_sums_ || config_.model == ModelKind::kTorchScript) return false;
    return std::any_of(model_->buffers().begin(), model_->buffers().end(),
                       [](const NamedTensor& each) { return each.name.ends_with("running_mean"); });
}

/// The step's number is written where a graph that was captured before finds it.
Pass Training::own_pass(const Pass& pass, const StepOptions& options, at::Device device) {
    Pass own = pass;
    own.sums = rank_sums_.get();
    if (options.share.stride > 1) own.rows = options.share.rows;
    if (device.is_cpu()) return own;
    const auto number = static_cast<std::int64_t>(static_cast<std::uint32_t>(pass.step));
    if (!step_on_device_.defined())
        step_on_device_ = at::full({}, number, at::TensorOptions(device).dtype(at::kLong));
    else
        step_on_device_.fill_(number);
    own.step_on_device = step_on_device_;
    return own;
}

Result<at::Tensor> Training::step(const BatchTensors& batch, const Pass& asked,
                                  const StepOptions& options) {
    const BatchTensors here = placed(batch);
    const bool needs_parts = options.measures_noise && !backward_->measures_ranks();
    // The same on all ranks, whose shares may differ by a row.
    const Share& share = options.share;
    const std::int64_t most =
        share.stride == 1 ? here.rows : (share.step_rows + share.stride - 1) / share.stride;
    const std::int64_t parts =
        std::min(std::max<std::int64_t>(options.parts, needs_parts ? 2 : 1), most);
    backward_->measure_parts(options.measures_noise);
    std::vector<at::Tensor> gradients;
    Result<at::Tensor> mean = at::Tensor();
    const Pass pass = own_pass(asked, options, here.x.device());
    if (parts > 1) {
        mean = summed_gradients_of(here, pass, options, parts, gradients);
    } else {
        model_->before_pass(pass, here.x.device());
        if (engine_ && !static_batch_.x.defined())
            static_batch_ = {at::empty_like(here.x), at::empty_like(here.target), here.rows};
        const bool captured = engine_ && here.x.sizes() == static_batch_.x.sizes();
        mean = captured ? captured_gradients_of(here, pass, gradients)
                        : gradients_of(here, pass, options.share.weight(), gradients);
    }
    if (!mean) return mean;
    if (options.measures_noise) keep_noise(gradients, options, here.rows);
    if (config_.clip_value > 0.0) gradients = clipped_by_value(gradients, config_.clip_value);
    if (config_.clip_norm > 0.0) gradients = clipped_by_norm(gradients, config_.clip_norm);
    const Span span("update");
    optimizer_->prepare(pass.step, options.lr);
    optimizer_->apply(gradients, scaler_ ? scaler_->found_infinite() : at::Tensor());
    if (scaler_) scaler_->update();
    return mean;
}

std::vector<NamedTensor> Training::scaler_state() const {
    if (!scaler_) return {};
    return {{"scaler.scale", scaler_->scale()}, {"scaler.good_steps", scaler_->good_steps()}};
}

}  // namespace tune::train
