#include <yaml-cpp/yaml.h>

#include "worker/train/config/config.h"

namespace tune::train {
namespace {

Error at(const std::string& origin, const YAML::Mark& mark, const std::string& message) {
    std::string context = origin;
    if (!mark.is_null())
        context += ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
    return Error{Code::kInvalidParameterValue, message, context};
}

Result<std::string> scalar_text(const YAML::Node& node, const std::string& name,
                                const std::string& origin) {
    if (node.IsScalar()) return node.Scalar();
    // A list of scalars is what a shape or a list of columns looks like in YAML.
    std::string text;
    if (!node.IsSequence() || node.size() == 0)
        return at(origin, node.Mark(), name + ": expected a value or a list of values");
    for (const YAML::Node& item : node) {
        if (!item.IsScalar()) return at(origin, item.Mark(), name + ": expected plain values");
        text += text.empty() ? item.Scalar() : "," + item.Scalar();
    }
    return text;
}

}  // namespace

Result<void> set_from_yaml(TrainConfig& config, const std::string& text,
                           const std::string& origin) try {
    const YAML::Node root = YAML::Load(text);
    if (root.IsNull()) return {};
    if (!root.IsMap())
        return at(origin, root.Mark(), "expected lines of the form `parameter: value`");
    for (const auto& entry : root) {
        if (!entry.first.IsScalar())
            return at(origin, entry.first.Mark(), "a parameter's name must be plain text");
        const std::string& name = entry.first.Scalar();
        TUNE_TRY(value, scalar_text(entry.second, name, origin));
        if (auto set = set_parameter(config, name, value); !set)
            return at(origin, entry.first.Mark(), set.error().message);
    }
    return {};
} catch (const YAML::Exception& error) {
    return at(origin, error.mark, error.msg);
}

}  // namespace tune::train
