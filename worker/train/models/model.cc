#include "worker/train/models/model.h"

namespace tune::train {

#define TUNE_MODEL(kind, name, make, help) \
    Result<std::unique_ptr<Model>> make(const TrainConfig& config, const Inputs& inputs);
#include "worker/train/models/models.inc"
#undef TUNE_MODEL

Result<std::unique_ptr<Model>> make_model(const TrainConfig& config, const Inputs& inputs) {
    switch (config.model) {
#define TUNE_MODEL(kind, name, make, help) \
    case ModelKind::kind:                  \
        return make(config, inputs);
#include "worker/train/models/models.inc"
#undef TUNE_MODEL
    }
    return Error{Code::kInvalidParameterValue, "there is no such model"};
}

at::Tensor ImageShape::view(const at::Tensor& x) const {
    if (channels_last) return x.view({-1, height, width, channels}).permute({0, 3, 1, 2});
    return x.view({-1, channels, height, width});
}

Result<ImageShape> image_shape(const TrainConfig& config, const Inputs& inputs) {
    const std::vector<std::int64_t>& shape = inputs.shape;
    const auto is_channels = [](std::int64_t n) { return n == 1 || n == 3 || n == 4; };
    if (shape.size() == 2) return ImageShape{.height = shape[0], .width = shape[1]};
    if (shape.size() == 3 && is_channels(shape[2]))
        return ImageShape{shape[0], shape[1], shape[2], true};
    if (shape.size() == 3 && is_channels(shape[0]))
        return ImageShape{shape[1], shape[2], shape[0], false};
    std::string sizes;
    for (const std::int64_t size : shape)
        sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
    return Error{Code::kInvalidParameterValue,
                 "model " + find_parameter("model")->get(config) +
                     " needs images: samples of shape H,W or H,W,C or C,H,W with 1, 3 or 4 "
                     "channels; these have shape " +
                     sizes + ". --shape H,W gives flat samples a shape; --model mlp needs none"};
}

}  // namespace tune::train
