// The network is traced: its forward pass is run once on made-up samples and what it computed is
// kept as a graph of TorchScript. (A user's own TorchScript module is taken as it is.) Around it
// stands a module of a few lines of TorchScript that does to stored samples what read_samples()
// does, in the same arithmetic, and brings values back to the label's unit. So nobody who loads the
// model has to know how it was fed.

#include "worker/train/saved_model/export_model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/clock.h"
#include "base/id.h"
#include "base/system/file.h"
#include "worker/train/models/model.h"
#include "worker/train/saved_model/model_files.h"

namespace tune::train {
namespace {

namespace fs = std::filesystem;
using torch::jit::Module;

/// Rows of the samples that a trace sees: more than one, so that none is taken for a constant.
constexpr std::int64_t kTracedRows = 2;

std::string text_of_number(std::int64_t number) {
    return std::to_string(number);
}

/// An empty module; what Python's train() and eval() set is there.
Module empty_module(const std::string& name) {
    Module module(c10::QualifiedName("__torch__.tune." + name));
    module.register_attribute("training", c10::BoolType::get(), false);
    return module;
}

/// Copies by name; what was trained in double precision is rounded. Errors:
/// kInvalidParameterValue.
Result<void> take_weights(const Safetensors& file, const std::string& name, at::Tensor tensor) {
    const TensorBytes* found = file.find(name);
    const bool is_wide = found != nullptr && found->dtype == "F64" && tensor.is_floating_point();
    const at::NoGradGuard no_grad;
    const at::Tensor taken =
        is_wide ? at::empty(tensor.sizes(), tensor.options().dtype(at::kDouble)) : tensor;
    if (found == nullptr || tensor.sizes() != at::IntArrayRef(found->shape) ||
        found->data.size() != taken.nbytes())
        return invalid_parameter("the weights have no '" + name + "' of the model's shape");
    // Numbers in a file need not lie at multiples of their size: bytes do.
    std::memcpy(taken.mutable_data_ptr(), found->data.data(), found->data.size());
    if (is_wide) tensor.copy_(taken);
    return {};
}

/// Puts "a.b.weight" into the submodule a of the submodule b, made when missing.
class Tree {
public:
    explicit Tree(Module root) : root_(std::move(root)) {}

    void add(const std::string& name, const at::Tensor& tensor, bool is_buffer) {
        Module at = root_;
        std::string path;
        std::size_t begin = 0;
        for (std::size_t dot; (dot = name.find('.', begin)) != std::string::npos; begin = dot + 1) {
            path = name.substr(0, dot);
            const auto known = modules_.find(path);
            if (known != modules_.end()) {
                at = known->second;
                continue;
            }
            Module child = empty_module("Layer");
            at.register_module(name.substr(begin, dot - begin), child);
            modules_.emplace(path, child);
            at = child;
        }
        at.register_parameter(name.substr(begin), tensor, is_buffer);
    }

private:
    Module root_;
    std::map<std::string, Module> modules_;
};

/// The network of one of our own models with these weights.
Result<Module> traced_network(const TrainConfig& config, const Inputs& inputs,
                              const Safetensors& weights) {
    TUNE_TRY(model, make_model(config, inputs));
    Module network = empty_module("Network");
    Tree tree(network);
    for (const NamedTensor& each : model->parameters()) {
        TUNE_TRY_VOID(take_weights(weights, each.name, each.tensor));
        tree.add(each.name, each.tensor, false);
    }
    for (const NamedTensor& each : model->buffers()) {
        TUNE_TRY_VOID(take_weights(weights, each.name, each.tensor));
        tree.add(each.name, each.tensor, true);
    }
    const at::NoGradGuard no_grad;
    const std::int64_t columns = inputs.is_tokens() ? inputs.places() : inputs.row_elements();
    const at::Tensor sample =
        at::zeros({kTracedRows, columns}, inputs.is_tokens() ? at::kLong : at::kFloat);
    const auto [state, output] = torch::jit::tracer::trace(
        {sample},
        [&](torch::jit::Stack stack) -> torch::jit::Stack {
            return {model->forward(stack.front().toTensor(), Pass{})};
        },
        [](const at::Tensor&) { return std::string(); }, /*strict=*/true,
        /*force_outplace=*/false, &network, {"x"});
    const c10::QualifiedName name(*network.type()->name(), "forward");
    network.type()->addMethod(
        network._ivalue()->compilation_unit()->create_function(name, state->graph));
    return network;
}

/// The user's module with these weights.
Result<Module> scripted_network(const TrainConfig& config, const Safetensors& weights) {
    Module network = torch::jit::load(config.module, c10::kCPU);
    for (const auto& each : network.named_parameters())
        TUNE_TRY_VOID(take_weights(weights, each.name, each.value));
    for (const auto& each : network.named_buffers())
        TUNE_TRY_VOID(take_weights(weights, each.name, each.value));
    network.eval();
    return network;
}

std::string list_text(const std::vector<std::int64_t>& shape) {
    std::string list = "[-1";
    for (const std::int64_t size : shape) list += ", " + text_of_number(size);
    return list + "]";
}

/// From stored samples to what the network reads; see read_samples() and TorchScript::shaped().
std::string preparation(const TrainConfig& config, const Inputs& inputs) {
    constexpr const char* kFloat = "6";  // the numbers of c10::ScalarType
    constexpr const char* kLong = "4";
    const std::string row = text_of_number(inputs.row_elements());
    if (inputs.is_tokens()) {
        std::string text = std::string("    h = x.to(dtype=") + kLong + ")\n";
        if (!inputs.is_language()) return text + "    h = h.reshape([-1, " + row + "])\n";
        // Of n stored tokens the last is only predicted.
        return text + "    h = h[:, 0:" + text_of_number(inputs.places()) + "]\n";
    }
    std::string text = std::string("    h = x.to(dtype=") + kFloat + ").reshape([-1, " + row +
                       "])\n    h = (h - self.mean) * self.scale\n";
    if (config.model != ModelKind::kTorchScript) return text;
    text += "    h = h.reshape(" + list_text(inputs.shape) + ")\n";
    const std::vector<std::int64_t>& shape = inputs.shape;
    const bool is_last = shape.size() == 3 && (shape[2] == 1 || shape[2] == 3 || shape[2] == 4);
    return is_last ? text + "    h = h.permute([0, 3, 1, 2])\n" : text;
}

bool gives_values(const Inputs& inputs) {
    return !inputs.is_language() && !inputs.is_classification();
}

/// From what the network gives to what users want.
std::string completion(const TrainConfig& config, const Inputs& inputs) {
    if (!gives_values(inputs)) return "    return y.to(dtype=6)\n";
    if (config.loss == LossKind::kBce)
        return "    return y.to(dtype=6).reshape([-1, 1]).sigmoid()\n";
    return "    return y.to(dtype=6).reshape([-1, 1]) / self.label_scale + self.label_mean\n";
}

Result<Module> whole_module(const TrainConfig& config, const Inputs& inputs,
                            const Safetensors& weights) {
    const bool is_script = config.model == ModelKind::kTorchScript;
    TUNE_TRY(network, is_script ? scripted_network(config, weights)
                                : traced_network(config, inputs, weights));
    Module module = empty_module("TrainedModel");
    if (!inputs.is_tokens()) {
        at::Tensor mean = at::zeros({inputs.row_elements()}, at::kFloat);
        at::Tensor scale = at::zeros({inputs.row_elements()}, at::kFloat);
        for (const InputColumn& column : inputs.columns) {
            mean.narrow(0, column.offset, column.elements).fill_(static_cast<float>(column.mean));
            scale.narrow(0, column.offset, column.elements).fill_(static_cast<float>(column.scale));
        }
        module.register_buffer("mean", mean);
        module.register_buffer("scale", scale);
    }
    if (gives_values(inputs)) {
        module.register_buffer("label_mean", at::full({1}, inputs.label_mean, at::kFloat));
        module.register_buffer("label_scale", at::full({1}, inputs.label_scale, at::kFloat));
    }
    module.register_module("model", network);
    module.define("def forward(self, x: Tensor) -> Tensor:\n" + preparation(config, inputs) +
                  "    y = self.model.forward(h)\n" + completion(config, inputs));
    return module;
}

std::string numpy_name(loader::Dtype dtype) {
    switch (dtype) {
        case loader::Dtype::kUint8: return "uint8";
        case loader::Dtype::kInt8: return "int8";
        case loader::Dtype::kUint16: return "uint16";
        case loader::Dtype::kInt16: return "int16";
        case loader::Dtype::kFloat16: return "float16";
        case loader::Dtype::kUint32: return "uint32";
        case loader::Dtype::kInt32: return "int32";
        case loader::Dtype::kFloat32: return "float32";
        case loader::Dtype::kUint64: return "uint64";
        case loader::Dtype::kInt64: return "int64";
        case loader::Dtype::kFloat64: return "float64";
    }
    return "float32";
}

/// One column as it is stored; several side by side in one row, in the type that holds them all.
TensorShape input_of(const Inputs& inputs, const std::vector<loader::ColumnInfo>& columns) {
    std::set<std::string> types;
    TensorShape input{.dtype = {}, .shape = {-1}};
    for (const InputColumn& column : inputs.columns)
        for (const loader::ColumnInfo& stored : columns)
            if (stored.name == column.name) types.insert(numpy_name(stored.dtype));
    input.dtype = types.size() == 1 ? *types.begin() : "float64";
    input.shape.insert(input.shape.end(), inputs.shape.begin(), inputs.shape.end());
    return input;
}

TensorShape output_of(const Inputs& inputs) {
    if (inputs.is_language()) return {"float32", {-1, inputs.places(), inputs.outputs()}};
    return {"float32", {-1, inputs.outputs()}};
}

Json metadata_of(const TrainConfig& config, const Inputs& inputs, std::int64_t epoch) {
    Json names = Json::array();
    for (const InputColumn& column : inputs.columns) names.push_back(column.name);
    return {{"tune",
             {{"columns", std::move(names)},
              {"label", inputs.label},
              {"classes", inputs.classes},
              {"model", find_parameter("model")->get(config)},
              {"epoch", epoch}}}};
}

Result<void> write_folder(const Module& module, const TensorShape& input, const TensorShape& output,
                          const Json& metadata, const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder / "data", error);
    if (error)
        return Error{Code::kInternalError, "cannot make it: " + error.message(), folder.string()};
    module.save((folder / "data" / "model.pth").string());
    TUNE_TRY_VOID(write_file_atomic(folder / "data" / "pickle_module_info.txt",
                                    "mlflow.pytorch.pickle_module"));
    ModelFiles files{.input = input,
                     .output = output,
                     .torch_version = TORCH_VERSION,
                     .bytes = 0,
                     .uuid = random_hex(16),
                     .time_ms = SystemClock().now_ms(),
                     .metadata = to_text(metadata)};
    for (const char* name : {"model.pth", "pickle_module_info.txt"})
        files.bytes += static_cast<std::int64_t>(fs::file_size(folder / "data" / name, error));
    for (const auto& [name, text] : environment_files(files.torch_version))
        TUNE_TRY_VOID(write_file_atomic(folder / name, text));
    return write_file_atomic(folder / "MLmodel", mlmodel_text(files));
}

/// `made` takes the place of `folder`.
Result<void> put_in_place(const fs::path& made, const fs::path& folder) {
    std::error_code error;
    if (fs::exists(folder / "MLmodel", error)) fs::remove_all(folder, error);
    fs::rename(made, folder, error);  // over an empty folder, too
    if (!error) return {};
    return Error{error == std::errc::directory_not_empty || error == std::errc::not_a_directory
                     ? Code::kInvalidParameterValue
                     : Code::kInternalError,
                 "model-dir: '" + folder.string() + "' cannot become a model: " + error.message()};
}

}  // namespace

Result<void> export_model(const TrainConfig& config, const Inputs& inputs,
                          const Safetensors& weights, const ModelOrigin& origin) {
    const fs::path folder = fs::absolute(origin.directory).lexically_normal();
    const fs::path made = folder.string() + ".part-" + random_hex(4);
    Result<void> result;
    try {
        const Result<Module> module = whole_module(config, inputs, weights);
        result = module ? write_folder(*module, input_of(inputs, origin.columns), output_of(inputs),
                                       metadata_of(config, inputs, origin.epoch), made)
                        : module.error();
    } catch (const std::exception& error) {
        const std::string text = error.what();
        result = Error{Code::kInternalError,
                       "the model cannot be written as TorchScript: " + text.substr(0, 500)};
    }
    if (result) result = put_in_place(made, folder);
    std::error_code ignored;
    fs::remove_all(made, ignored);
    return result;
}

}  // namespace tune::train
