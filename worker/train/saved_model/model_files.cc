// The form is that of mlflow 3.17.2's pytorch flavor (mlflow/pytorch/__init__.py, save_model) for a
// scripted model, in the order of keys in which it writes them.

#include "worker/train/saved_model/model_files.h"

#include <nlohmann/json.hpp>

#include "base/text/time_text.h"
#include "base/version.h"

namespace tune::train {
namespace {

/// Of the Python for which the wheels of this torch are made; MLflow warns about another one only.
constexpr const char* kPythonVersion = "3.11";

std::vector<std::string> requirements(const std::string& torch_version) {
    return {std::string("mlflow==") + kMlflowVersion, "numpy", "torch==" + torch_version};
}

std::string quoted(const std::string& text) {
    std::string result = "'";
    for (const char c : text) {
        result += c;
        if (c == '\'') result += c;
    }
    return result + "'";
}

}  // namespace

std::string signature_text(const TensorShape& tensor) {
    nlohmann::ordered_json spec = {{"dtype", tensor.dtype}, {"shape", tensor.shape}};
    nlohmann::ordered_json entry = {{"type", "tensor"}, {"tensor-spec", std::move(spec)}};
    return nlohmann::ordered_json::array({std::move(entry)}).dump();
}

std::string mlmodel_text(const ModelFiles& files) {
    std::string text = "flavors:\n  python_function:\n";
    text += "    config:\n      device: null\n    data: data\n";
    text += "    env:\n      conda: conda.yaml\n      virtualenv: python_env.yaml\n";
    text += "    loader_module: mlflow.pytorch\n";
    text += "    pickle_module_name: mlflow.pytorch.pickle_module\n";
    text += std::string("    python_version: ") + quoted(kPythonVersion) + "\n";
    text += "  pytorch:\n    code: null\n    model_data: data\n";
    text += "    pytorch_version: " + files.torch_version + "\n";
    // YAML takes JSON as it is.
    text += "metadata: " + files.metadata + "\n";
    text += std::string("mlflow_version: ") + kMlflowVersion + "\n";
    text += "model_size_bytes: " + std::to_string(files.bytes) + "\n";
    text += "model_uuid: " + quoted(files.uuid) + "\n";
    text += "prompts: null\nsignature:\n";
    text += "  inputs: " + quoted(signature_text(files.input)) + "\n";
    text += "  outputs: " + quoted(signature_text(files.output)) + "\n  params: null\n";
    text += "utc_time_created: '" + utc_text(files.time_ms, "%Y-%m-%d %H:%M:%S") + "." +
            microseconds_text(files.time_ms) + "'\n";
    return text;
}

std::vector<std::pair<std::string, std::string>> environment_files(
    const std::string& torch_version) {
    std::string lines;
    std::string conda = std::string("channels:\n- conda-forge\ndependencies:\n- python=") +
                        kPythonVersion + "\n- pip\n- pip:\n";
    for (const std::string& each : requirements(torch_version)) {
        lines += each + "\n";
        conda += "  - " + each + "\n";
    }
    return {{"requirements.txt", lines},
            {"conda.yaml", conda + "name: mlflow-env\n"},
            {"python_env.yaml", std::string("python: ") + quoted(kPythonVersion) +
                                    "\nbuild_dependencies:\n- pip\n- setuptools\n- wheel\n"
                                    "dependencies:\n- -r requirements.txt\n"}};
}

}  // namespace tune::train
