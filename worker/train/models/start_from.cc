// A file's tensors are matched by name, with or without the prefixes that wrappers add ("module."
// of DistributedDataParallel, "model." of our own checkpoints). All of the model must be found, in
// the right shapes, except its last layer: another task has other outputs.

#include "worker/train/models/start_from.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/text/counted.h"
#include "worker/train/checkpoint/safetensors.h"
#include "worker/train/rules/freezing.h"

namespace tune::train {
namespace {

using TensorsByName = std::map<std::string, at::Tensor>;

std::optional<at::ScalarType> stored_type(const std::string& dtype) {
    static const std::map<std::string, at::ScalarType> types = {
        {"F32", at::kFloat},     {"F64", at::kDouble}, {"F16", at::kHalf},
        {"BF16", at::kBFloat16}, {"I64", at::kLong},   {"I32", at::kInt}};
    const auto found = types.find(dtype);
    return found == types.end() ? std::nullopt : std::optional(found->second);
}

/// The file itself, or the one that a folder holds.
Result<std::filesystem::path> weights_file(const std::string& path) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(path, ignored)) {
        if (std::filesystem::is_regular_file(path, ignored)) return std::filesystem::path(path);
        return Error{Code::kResourceDoesNotExist, "init-from: there is no file '" + path + "'"};
    }
    for (const char* name : {"model.safetensors", "best.safetensors", "data/model.safetensors",
                             "data/model.pt", "data/model.pth"})
        if (std::filesystem::is_regular_file(std::filesystem::path(path) / name, ignored))
            return std::filesystem::path(path) / name;
    return Error{
        Code::kResourceDoesNotExist,
        "init-from: folder '" + path + "' holds neither model.safetensors nor best.safetensors"};
}

std::string plain_name(std::string name) {
    for (const char* prefix : {"module.", "model."})
        if (name.starts_with(prefix)) name.erase(0, std::string_view(prefix).size());
    return name;
}

Result<TensorsByName> read_tensors(const std::filesystem::path& path) {
    TensorsByName tensors;
    if (path.extension() != ".safetensors") {
        TUNE_TRY(list, read_torchscript(path.string()));
        for (const NamedTensor& each : list) tensors[plain_name(each.name)] = each.tensor;
        return tensors;
    }
    TUNE_TRY(file, Safetensors::read(path.string()));
    for (const TensorBytes& each : file.tensors()) {
        if (each.name.starts_with("optimizer.")) continue;
        const auto type = stored_type(each.dtype);
        if (!type) continue;
        // A copy: numbers in a file need not lie at multiples of their size.
        tensors[plain_name(each.name)] =
            at::from_blob(const_cast<std::byte*>(each.data.data()), each.shape, *type).clone();
    }
    return tensors;
}

std::string shape_text(at::IntArrayRef shape) {
    std::string list;
    for (const std::int64_t size : shape) list += (list.empty() ? "" : ",") + std::to_string(size);
    return "[" + list + "]";
}

struct WeightMatch {
    std::vector<std::pair<at::Tensor, at::Tensor>> copies;  ///< to, from
    std::string fresh;
    std::string problems;
    int problem_count = 0;

    void add_problem(const std::string& problem) {
        if (++problem_count <= 5) problems += (problems.empty() ? "" : "; ") + problem;
    }
    void look(const NamedTensor& wanted, const TensorsByName& tensors, bool is_head, bool skips) {
        const auto found = tensors.find(wanted.name);
        const bool fits = found != tensors.end() && found->second.sizes() == wanted.tensor.sizes();
        if (fits && !skips) {
            copies.emplace_back(wanted.tensor, found->second);
        } else if (is_head) {
            fresh += (fresh.empty() ? "" : ", ") + wanted.name;
        } else if (found != tensors.end()) {
            add_problem("'" + wanted.name + "' is " + shape_text(found->second.sizes()) +
                        " there and " + shape_text(wanted.tensor.sizes()) + " here");
        } else if (!wanted.name.ends_with("num_batches_tracked")) {
            add_problem("'" + wanted.name + "' is missing");
        }
    }
};

}  // namespace

Result<std::string> start_from(Model& model, const TrainConfig& config) {
    TUNE_TRY(path, weights_file(config.init_from));
    TUNE_TRY(tensors, read_tensors(path));
    std::vector<std::string> names;
    for (const NamedTensor& each : model.parameters()) names.push_back(each.name);
    const std::vector<std::size_t> layers = layers_of(names);
    const std::size_t last = layers.empty() ? 0 : *std::max_element(layers.begin(), layers.end());
    WeightMatch match;
    for (std::size_t i = 0; i < names.size(); ++i)
        match.look(model.parameters()[i], tensors, layers[i] == last,
                   layers[i] == last && config.new_head);
    for (const NamedTensor& each : model.buffers()) match.look(each, tensors, false, false);
    if (match.problem_count > 0)
        return invalid_parameter(
            "init-from: '" + path.string() + "' is not of this model: " + match.problems +
            (match.problem_count > 5 ? "; and " + std::to_string(match.problem_count - 5) + " more"
                                     : ""));
    const at::NoGradGuard no_grad;
    for (const auto& [to, from] : match.copies) to.copy_(from);
    std::string report = "starts from " + path.string() + ": " +
                         counted(static_cast<std::int64_t>(match.copies.size()), "tensor") +
                         " taken";
    if (!match.fresh.empty()) report += "; new: " + match.fresh;
    const std::size_t unused = tensors.size() - std::min(tensors.size(), match.copies.size());
    if (unused > 0) report += "; " + std::to_string(unused) + " of the file not used";
    return report;
}

}  // namespace tune::train
