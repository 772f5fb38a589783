// A sweep of Weights & Biases (its sweep configuration's YAML). `log_uniform` and its kin take
// exponents there, `..._values` take values.

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "tuner/interop/foreign/builder.h"
#include "tuner/space/error_text.h"

namespace tune::tuner {
namespace {

class SweepReader {
public:
    explicit SweepReader(StudyBuilder& builder) : builder_(builder) {}

    Result<void> read(const Node& root) {
        if (const Node* name = root.find("name")) builder_.set("study", to_json(*name));
        TUNE_TRY_VOID(read_command(root));
        TUNE_TRY_VOID(read_metric(root.find("metric")));
        const Node* parameters = root.find("parameters");
        if (parameters == nullptr || parameters->type != Node::Type::kMap)
            return error_at(root.place, "parameters", "expected a map of parameters");
        TUNE_TRY_VOID(read_group(*parameters, ""));
        TUNE_TRY_VOID(read_method(root.find("method")));
        TUNE_TRY_VOID(read_stopping(root.find("early_terminate")));
        if (const Node* cap = root.find("run_cap")) budget_["trials"] = to_json(*cap);
        if (!budget_.empty()) builder_.set("budget", budget_);
        note_others(builder_, root,
                    {"name", "program", "command", "metric", "parameters", "method",
                     "early_terminate", "run_cap"},
                    "");
        return {};
    }

private:
    Result<void> read_command(const Node& root) {
        const Node* program = root.find("program");
        const Node* command = root.find("command");
        const std::string script = program != nullptr ? program->text : "";
        if (command == nullptr) {
            if (program != nullptr) builder_.set("command", {"python", script, "{args}"});
            return {};
        }
        if (command->type != Node::Type::kList)
            return error_at(command->place, "command", "expected a list of words");
        Json words = Json::array();
        for (const Node& item : command->items) {
            const Json value = to_json(item);
            const std::string word = value.is_string() ? value.get<std::string>() : to_text(value);
            if (word == "${env}" || word == "/usr/bin/env") continue;
            if (word == "${interpreter}") {
                words.push_back("python");
            } else if (word == "${program}") {
                words.push_back(script);
            } else if (word == "${args}") {
                words.push_back("{args}");
            } else if (word.starts_with("${args")) {
                builder_.note(item.place, "command: " + word +
                                              " has no counterpart; {args} gives --name=value");
                words.push_back("{args}");
            } else {
                words.push_back(word);
            }
        }
        builder_.set("command", words);
        return {};
    }

    Result<void> read_metric(const Node* metric) {
        if (metric == nullptr) return {};
        const Node* name = metric->find("name");
        if (name == nullptr) return error_at(metric->place, "metric", "'name' is missing");
        const Node* goal = metric->find("goal");
        const bool is_max = goal != nullptr && goal->text == "maximize";
        builder_.set("metric", {{"name", to_json(*name)}, {"goal", is_max ? "max" : "min"}});
        if (const Node* target = metric->find("target")) {
            TUNE_TRY(number, number_in(*target, "metric.target"));
            budget_["target"] = number_json(number);
        }
        note_others(builder_, *metric, {"name", "goal", "target"}, "metric");
        return {};
    }

    Result<void> read_method(const Node* method) {
        if (method == nullptr) return {};
        const std::string& name = method->text;
        if (name == "bayes") {
            builder_.set("sampler", {{"type", "gp"}});
        } else if (name == "random") {
            builder_.set("sampler", {{"type", "random"}});
        } else if (name == "grid") {
            builder_.set("sampler", {{"type", "grid"}});
        } else {
            builder_.note(method->place, "method " + in_quotes(name) + " has no counterpart");
        }
        return {};
    }

    Result<void> read_stopping(const Node* stopping) {
        if (stopping == nullptr) return {};
        Json pruner = {{"type", "asha"}};
        double eta = 3;
        if (const Node* given = stopping->find("eta")) {
            TUNE_TRY(number, number_in(*given, "early_terminate.eta"));
            eta = number;
        }
        pruner["eta"] = static_cast<std::int64_t>(eta);
        if (const Node* given = stopping->find("min_iter")) {
            TUNE_TRY(number, number_in(*given, "early_terminate.min_iter"));
            pruner["min"] = static_cast<std::int64_t>(number);
        } else if (const Node* most = stopping->find("max_iter")) {
            double rungs = 2;
            if (const Node* s = stopping->find("s")) {
                TUNE_TRY(number, number_in(*s, "early_terminate.s"));
                rungs = number;
            }
            TUNE_TRY(number, number_in(*most, "early_terminate.max_iter"));
            const double first = std::floor(number / std::pow(eta, rungs));
            pruner["min"] = static_cast<std::int64_t>(std::max(1.0, first));
            if (number > std::max(1.0, first)) pruner["max"] = static_cast<std::int64_t>(number);
        }
        builder_.set("pruner", pruner);
        note_others(builder_, *stopping, {"type", "min_iter", "max_iter", "s", "eta"},
                    "early_terminate");
        return {};
    }

    /// `parameters` within a parameter only group names: optimizer.lr.
    Result<void> read_group(const Node& group, const std::string& prefix) {
        for (const Entry& entry : group.entries) {
            const std::string name = prefix + entry.key;
            if (entry.value.type != Node::Type::kMap)
                return error_at(entry.value.place, name, "expected a map such as {min: 0, max: 1}");
            if (const Node* inner = entry.value.find("parameters");
                inner != nullptr && inner->type == Node::Type::kMap) {
                TUNE_TRY_VOID(read_group(*inner, name + "."));
                continue;
            }
            TUNE_TRY(spec, read_parameter(entry, name));
            TUNE_TRY_VOID(builder_.add(entry.place, name, std::move(spec), nullptr));
        }
        return {};
    }

    Result<Json> read_parameter(const Entry& entry, const std::string& name) {
        const Node& node = entry.value;
        const Node* of = node.find("distribution");
        const std::string kind = of != nullptr ? of->text : "";
        if (const Node* value = node.find("value")) return Json{{"const", to_json(*value)}};
        if (const Node* values = node.find("values")) {
            Json spec = {{"choice", to_json(*values)}};
            if (const Node* shares = node.find("probabilities")) spec["weights"] = to_json(*shares);
            return spec;
        }
        const auto number = [&](const char* key, double fallback) -> Result<double> {
            const Node* value = node.find(key);
            if (value == nullptr) return fallback;
            return number_in(*value, name + "." + key);
        };
        ForeignDomain domain;
        if (kind.starts_with("q_")) {
            TUNE_TRY(step, number("q", 1));
            domain.step = step;
        }
        const std::string plain = kind.starts_with("q_") ? kind.substr(2) : kind;
        if (plain == "normal" || plain == "log_normal") {
            TUNE_TRY(mu, number("mu", 0));
            TUNE_TRY(sigma, number("sigma", 1));
            domain.kind = ForeignDomain::Kind::kNormal;
            domain.log = plain == "log_normal";
            domain.center = domain.log ? std::exp(mu) : mu;
            domain.spread = sigma;
            return builder_.spec_of(entry.place, name, domain);
        }
        const Node* least = node.find("min");
        const Node* most = node.find("max");
        if (least == nullptr || most == nullptr)
            return error_at(entry.place, name,
                            kind.empty() ? "expected value, values, or min and max"
                                         : "distribution " + in_quotes(kind) +
                                               " has no counterpart, or lacks min and max");
        TUNE_TRY(low, number_in(*least, name + ".min"));
        TUNE_TRY(high, number_in(*most, name + ".max"));
        domain.low = low;
        domain.high = high;
        // Two whole numbers without a distribution mean an integer there.
        const bool are_whole = least->type == Node::Type::kInt && most->type == Node::Type::kInt;
        domain.is_integer = kind == "int_uniform" || (kind.empty() && are_whole);
        if (plain == "log_uniform") {
            domain.log = true;
            domain.low = std::exp(low);
            domain.high = std::exp(high);
        } else if (plain == "inv_log_uniform") {
            domain.log = true;  // 1/x log-uniform between e^min and e^max
            domain.low = std::exp(-high);
            domain.high = std::exp(-low);
        } else if (plain == "log_uniform_values" || plain == "inv_log_uniform_values") {
            domain.log = true;
        } else if (!plain.empty() && plain != "uniform" && plain != "int_uniform") {
            return error_at(of->place, name,
                            "distribution " + in_quotes(kind) + " has no counterpart");
        }
        return builder_.spec_of(entry.place, name, domain);
    }

    StudyBuilder& builder_;
    Json budget_ = Json::object();
};

}  // namespace

Result<void> read_wandb(const Node& root, StudyBuilder& builder) {
    return SweepReader(builder).read(root);
}

}  // namespace tune::tuner
