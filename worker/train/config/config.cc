// Flags, YAML and checkpoint records all go through the table in parameters.cc: a name is looked
// up, and its row checks the text and stores it. What no row can know alone is checked once all are
// set.

#include "worker/train/config/config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace tune::train {
namespace {

std::string normalised(std::string_view name) {
    std::string result(name);
    std::replace(result.begin(), result.end(), '_', '-');
    return result;
}

/// Edits (insert, delete, replace) that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
        }
    }
    return row[b.size()];
}

Error unknown_parameter(const std::string& name) {
    const Parameter* nearest = nullptr;
    std::size_t distance = 3;  // more than two edits away is another word
    std::string known;
    for (const Parameter& parameter : parameters()) {
        known += known.empty() ? parameter.name : ", " + parameter.name;
        const std::size_t edits = edit_distance(name, parameter.name);
        if (edits < distance) {
            distance = edits;
            nearest = &parameter;
        }
    }
    std::string message = "there is no parameter '" + name + "'";
    if (nearest != nullptr) message += "; did you mean '" + nearest->name + "'?";
    return Error{Code::kInvalidParameterValue, message + " Known parameters: " + known};
}

}  // namespace

const Parameter* find_parameter(std::string_view name) {
    const std::string wanted = normalised(name);
    for (const Parameter& parameter : parameters()) {
        if (parameter.name == wanted) return &parameter;
        if (std::find(parameter.aliases.begin(), parameter.aliases.end(), wanted) !=
            parameter.aliases.end())
            return &parameter;
    }
    return nullptr;
}

Result<void> set_parameter(TrainConfig& config, std::string_view name, std::string_view value) {
    const Parameter* parameter = find_parameter(name);
    if (parameter == nullptr) return unknown_parameter(normalised(name));
    return parameter->set(config, value);
}

Result<void> validate(const TrainConfig& config) {
    const auto wrong = [](std::string message) {
        return Error{Code::kInvalidParameterValue, std::move(message)};
    };
    if (config.data.empty())
        return wrong(
            "no data: give --data DIR, a directory with the splits train and val "
            "(tune-data convert makes one)");
    if (config.train_split == config.val_split)
        return wrong("train-split and val-split are both '" + config.train_split +
                     "'; validation on the training data measures nothing");
    if (config.warmup_steps > 0 && config.warmup_epochs > 0)
        return wrong("give warmup-steps or warmup-epochs, not both");
    if (config.nesterov && config.momentum == 0.0)
        return wrong("nesterov needs a momentum above 0");
    TUNE_TRY_VOID(parse_shape(config.shape));
    TUNE_TRY_VOID(early_stopping_rule(config));
    return {};
}

Result<std::optional<EarlyStoppingRule>> early_stopping_rule(const TrainConfig& config) {
    const bool wanted = !config.early_stopping.empty() || config.patience.has_value() ||
                        config.stopping_threshold.has_value() ||
                        config.divergence_threshold.has_value();
    if (!wanted) return std::optional<EarlyStoppingRule>();
    TUNE_TRY(rule, parse_early_stopping(config.early_stopping.empty() ? "val_loss:min"
                                                                      : config.early_stopping));
    rule.min_delta = config.min_delta;
    rule.patience = config.patience.value_or(rule.patience);
    rule.stopping_threshold = config.stopping_threshold;
    rule.divergence_threshold = config.divergence_threshold;
    return std::optional<EarlyStoppingRule>(rule);
}

LearningRate learning_rate(const TrainConfig& config, std::int64_t steps_per_epoch) {
    const std::int64_t base =
        config.base_batch_size > 0 ? config.base_batch_size : config.batch_size;
    const double k = static_cast<double>(config.batch_size) / static_cast<double>(base);
    // Warm-up covers the same number of samples whatever the batch size is.
    const double warmup = config.warmup_steps > 0
                              ? static_cast<double>(config.warmup_steps) / k
                              : config.warmup_epochs * static_cast<double>(steps_per_epoch);
    return {.base = config.lr,
            .effective = scaled_lr(config.lr, config.lr_scaling, config.batch_size, base),
            .schedule = config.schedule,
            .warmup_steps = std::llround(warmup),
            .total_steps = config.epochs * steps_per_epoch};
}

Json result_deciding(const TrainConfig& config) {
    Json record = Json::object();
    for (const Parameter& parameter : parameters())
        if (parameter.reach >= Reach::kResult) record[parameter.name] = parameter.get(config);
    return record;
}

namespace {

/// "width was '8' and is '16', ..." of the parameters that reach at least so far.
std::string differences_of(const TrainConfig& config, const Json& record, Reach least) {
    std::string differences;
    for (const Parameter& parameter : parameters()) {
        if (parameter.reach < least) continue;
        const std::string now = parameter.get(config);
        const std::string then =
            record.is_object() ? record.value(parameter.name, std::string()) : std::string();
        if (now == then) continue;
        differences += differences.empty() ? "" : ", ";
        differences += parameter.name + " was '" + then + "' and is '" + now + "'";
    }
    return differences;
}

}  // namespace

Result<void> check_same_training(const TrainConfig& config, const Json& record) {
    const std::string differences = differences_of(config, record, Reach::kResult);
    if (differences.empty()) return {};
    return Error{Code::kInvalidParameterValue,
                 "the checkpoint is of another training run: " + differences +
                     "; give another --checkpoint-dir, or remove the old checkpoint"};
}

Result<void> check_same_network(const TrainConfig& config, const Json& record) {
    const std::string differences = differences_of(config, record, Reach::kNetwork);
    if (differences.empty()) return {};
    return Error{Code::kInvalidParameterValue,
                 "the checkpoint to start from is of another network: " + differences +
                     "; in population based training these are the same for all trials"};
}

Result<std::vector<std::int64_t>> parse_shape(std::string_view text) {
    std::vector<std::int64_t> shape;
    std::string digits;
    const auto wrong = [&] {
        return Error{Code::kInvalidParameterValue,
                     "shape: '" + std::string(text) +
                         "' is not a list of sizes from 1 to 1000000, e.g. 8,8"};
    };
    if (text.empty()) return shape;
    for (std::size_t i = 0; i <= text.size(); ++i) {
        const char c = i < text.size() ? text[i] : ',';
        if (c >= '0' && c <= '9') {
            digits += c;
        } else if (c == ',' || c == 'x') {
            if (digits.empty() || digits.size() > 7 || shape.size() == 8) return wrong();
            shape.push_back(std::stoll(digits));
            if (shape.back() < 1 || shape.back() > 1'000'000) return wrong();
            digits.clear();
        } else if (c != ' ') {
            return wrong();
        }
    }
    return shape;
}

std::vector<std::string> split_list(std::string_view text) {
    std::vector<std::string> parts;
    std::string part;
    for (std::size_t i = 0; i <= text.size(); ++i) {
        if (i < text.size() && text[i] != ',') {
            part += text[i];
            continue;
        }
        const std::size_t first = part.find_first_not_of(" \t");
        if (first != std::string::npos)
            parts.push_back(part.substr(first, part.find_last_not_of(" \t") - first + 1));
        part.clear();
    }
    return parts;
}

}  // namespace tune::train
