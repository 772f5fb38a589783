#include "worker/train/training.h"

#include <ATen/ops/add.h>
#include <ATen/ops/from_blob.h>
#include <torch/csrc/autograd/autograd.h>

namespace tune::train {
namespace {

/// Gradients are handed over, not accumulated into .grad: no zeroing, no copy.
class OwnBackward final : public BackwardPass {
public:
    explicit OwnBackward(std::vector<at::Tensor> leaves) : leaves_(std::move(leaves)) {}

    Result<std::vector<at::Tensor>> backward(const at::Tensor& loss) override {
        std::vector<at::Tensor> gradients = torch::autograd::grad({loss}, leaves_);
        for (std::size_t i = 0; i < gradients.size(); ++i) {
            if (!sums_.empty()) gradients[i] = at::add(gradients[i], sums_[i]);
            if (gradients[i].strides() != leaves_[i].strides())
                gradients[i] = leaves_[i].is_contiguous()
                                   ? gradients[i].contiguous()
                                   : gradients[i].contiguous(at::MemoryFormat::ChannelsLast);
        }
        sums_.clear();
        return gradients;
    }

    void accumulate(const at::Tensor& loss) override {
        std::vector<at::Tensor> gradients = torch::autograd::grad({loss}, leaves_);
        for (std::size_t i = 0; i < sums_.size(); ++i)
            gradients[i] = at::add(gradients[i], sums_[i]);
        sums_ = std::move(gradients);
    }

    void set_leaves(const std::vector<at::Tensor>& leaves) override {
        leaves_ = leaves;
        sums_.clear();
    }

private:
    std::vector<at::Tensor> leaves_;
    std::vector<at::Tensor> sums_;  ///< of the parts of a step so far
};

template <class T>
at::Tensor view_of(const CacheLineVector<T>& values, std::vector<std::int64_t> shape,
                   at::ScalarType type) {
    return at::from_blob(const_cast<T*>(values.data()), shape, type);
}

}  // namespace

BatchTensors BatchTensors::slice(std::int64_t first, std::int64_t count) const {
    return {x.narrow(0, first, count), target.narrow(0, first, count), count};
}

Result<std::unique_ptr<Training>> Training::make(const TrainConfig& config, const Inputs& inputs) {
    TUNE_TRY(model, make_model(config, inputs));
    return std::unique_ptr<Training>(new Training(config, inputs, std::move(model)));
}

Training::Training(const TrainConfig& config, const Inputs& inputs, std::unique_ptr<Model> model)
    : config_(config),
      inputs_(inputs),
      model_(std::move(model)),
      task_(make_task(config, inputs)),
      optimizer_(make_optimizer(config, model_->parameters())) {
    for (const NamedTensor& parameter : model_->parameters()) leaves_.push_back(parameter.tensor);
    backward_ = std::make_unique<OwnBackward>(leaves_);
}

void Training::set_backward(std::unique_ptr<BackwardPass> backward) {
    backward_ = std::move(backward);
}

BatchTensors Training::view(const Samples& samples) const {
    const std::int64_t rows = samples.count;
    const std::int64_t row = inputs_.row_elements();
    BatchTensors batch{.x = {}, .target = {}, .rows = rows};
    if (inputs_.is_tokens())
        batch.x = view_of(samples.tokens, {rows, row}, at::kLong);
    else if (inputs_.keeps_bytes)
        batch.x = view_of(samples.bytes, {rows, row}, at::kByte);
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
    if (batch.x.scalar_type() != at::kByte) return model_->forward(batch.x, pass);
    // The arithmetic of read_samples(), where the bytes are.
    const InputColumn& column = inputs_.columns.front();
    const at::Tensor x = batch.x.to(at::kFloat)
                             .sub_(static_cast<float>(column.mean))
                             .mul_(static_cast<float>(column.scale));
    return model_->forward(x, pass);
}

at::Tensor Training::loss(const BatchTensors& batch, const Pass& pass) const {
    return task_->loss(output(batch, pass), batch.target);
}

Result<at::Tensor> Training::step(const BatchTensors& batch, const Pass& pass, double lr) {
    const at::Tensor mean = loss(batch, pass);
    TUNE_TRY(gradients, backward_->backward(mean));
    optimizer_->step(gradients, pass.step, lr);
    return mean.detach();
}

}  // namespace tune::train
