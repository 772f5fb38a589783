#pragma once
// The files that make a folder with data/model.pth a model of MLflow 3: MLmodel and what a Python
// that loads it has to install. Texts only; see docs/logged_models.md.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tune::train {

/// One tensor as a model reads or gives it; -1 in `shape` is any size.
struct TensorShape {
    std::string dtype;  ///< numpy's name, e.g. "uint8"
    std::vector<std::int64_t> shape;
};

/// What the files say.
struct ModelFiles {
    TensorShape input;
    TensorShape output;
    std::string torch_version;  ///< "2.15.0"
    std::int64_t bytes = 0;     ///< of data/ together
    std::string uuid;           ///< 32 hex digits
    std::int64_t time_ms = 0;
    std::string metadata;  ///< JSON, for who wants to know how the data became tensors
};

/// MLflow's signature of one tensor: [{"type": "tensor", "tensor-spec": {...}}]. It has no name,
/// because MLflow takes a plain array only where there is none.
[[nodiscard]] std::string signature_text(const TensorShape& tensor);

/// The text of MLmodel, flavors pytorch and python_function.
[[nodiscard]] std::string mlmodel_text(const ModelFiles& files);

/// requirements.txt, conda.yaml and python_env.yaml, in this order as {name, text}.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> environment_files(
    const std::string& torch_version);

}  // namespace tune::train
