// Flags, YAML and checkpoint records all go through the table in parameters.cc: a name is looked
// up, and its row checks the text and stores it. What no row can know alone is checked once all are
// set.

#include "worker/train/config/config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text/counted.h"
#include "loader/source/open_source.h"
#include "worker/train/rules/freezing.h"

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

namespace {

Result<void> check_transfer(const TrainConfig& config) {
    if (config.init_from.starts_with("models:"))
        return invalid_parameter(
            "init-from: '" + config.init_from +
            "' is a model of the registry, and the trainer has no network: in a trial the agent "
            "fetches it, for --init-from=NAME in the command; elsewhere fetch it first "
            "(mlflow artifacts download --artifact-uri " +
            config.init_from + "), and give the file or folder");
    if (config.new_head && config.init_from.empty())
        return invalid_parameter("new-head is for --init-from: without it every layer is new");
    TUNE_TRY_VOID(check_pattern("freeze", config.freeze));
    TUNE_TRY_VOID(parse_unfreezing(config.unfreeze));
    return {};
}

Result<void> check_model(const TrainConfig& config) {
    const bool attends = config.model == ModelKind::kTransformer || config.model == ModelKind::kGpt;
    if (attends && config.width % config.heads != 0)
        return invalid_parameter("heads: " + std::to_string(config.heads) +
                                 " does not divide the width " + std::to_string(config.width));
    const bool is_module = config.model == ModelKind::kTorchScript;
    if (is_module && config.module.empty())
        return invalid_parameter(
            "model torchscript needs --module FILE, which torch.jit.script wrote");
    if (!is_module && !config.module.empty())
        return invalid_parameter("module is for --model=torchscript only");
    if (config.model == ModelKind::kGpt && config.input == InputKind::kNumbers)
        return invalid_parameter("model gpt reads tokens: --input=numbers is for other models");
    return {};
}

Result<void> check_optimisation(const TrainConfig& config) {
    if (config.warmup_steps > 0 && config.warmup_epochs > 0)
        return invalid_parameter("give warmup-steps or warmup-epochs, not both");
    if (config.schedule == LrSchedule::kOneCycle &&
        (config.warmup_steps > 0 || config.warmup_epochs > 0))
        return invalid_parameter("schedule one-cycle begins with its own warm-up: give no other");
    if (config.nesterov && config.momentum == 0.0)
        return invalid_parameter("nesterov needs a momentum above 0");
    if (config.lr_scaling == LrScaling::kAdamSde && config.optimizer != OptimizerKind::kAdamW)
        return invalid_parameter("lr-scaling adam_sde is for --optimizer=adamw");
    if (config.accumulate > config.batch_size)
        return invalid_parameter("accumulate: a batch of " + counted(config.batch_size, "sample") +
                                 " cannot be cut into " + std::to_string(config.accumulate) +
                                 " parts");
    if (config.find_batch_size != FindBatchSize::kOff && config.base_batch_size == 0)
        return invalid_parameter(
            "find-batch-size changes the batch size: give --base-batch-size, the one that "
            "lr is meant for");
    return check_transfer(config);
}

Result<void> check_task(const TrainConfig& config) {
    const bool language = is_language(config);
    if (config.model == ModelKind::kGpt && !language)
        return invalid_parameter("model gpt predicts the next token: its task is language");
    if (language && config.model != ModelKind::kGpt && config.model != ModelKind::kTorchScript)
        return invalid_parameter(
            "task language needs --model=gpt, or a module of yours that gives "
            "scores [batch, places, vocabulary]");
    const std::string loss = find_parameter("loss")->get(config);
    const bool values = config.loss == LossKind::kMse || config.loss == LossKind::kMae ||
                        config.loss == LossKind::kHuber;
    const bool classes = config.task == TaskKind::kClassification;
    if ((language && config.loss != LossKind::kAuto && config.loss != LossKind::kCrossEntropy) ||
        (classes && values))
        return invalid_parameter("loss: " + loss + " is not for this task");
    if (config.task == TaskKind::kRegression && config.loss == LossKind::kCrossEntropy)
        return invalid_parameter(
            "loss: cross-entropy is for classes and tokens, not for regression");
    return {};
}

}  // namespace

bool is_language(const TrainConfig& config) {
    if (config.task == TaskKind::kAuto) return config.model == ModelKind::kGpt;
    return config.task == TaskKind::kLanguage;
}

Result<void> validate(const TrainConfig& config) {
    if (config.data.empty())
        return invalid_parameter(
            "no data: give --data DIR, a directory or URL with the splits train and val "
            "(tune-data convert makes one)");
    if (loader::is_local_url(config.data) &&
        (!config.data_cache.empty() || config.data_cache_limit != 0))
        return invalid_parameter("--data-cache and --data-cache-limit are for data at a URL; '" +
                                 config.data + "' is read where it lies");
    if (config.train_split == config.val_split)
        return invalid_parameter("train-split and val-split are both '" + config.train_split +
                                 "'; validation on the training data measures nothing");
    TUNE_TRY_VOID(check_model(config));
    TUNE_TRY_VOID(check_optimisation(config));
    TUNE_TRY_VOID(check_task(config));
    TUNE_TRY_VOID(parse_shape(config.shape));
    TUNE_TRY_VOID(early_stopping_rule(config));
    if (!config.profile.empty()) TUNE_TRY_VOID(parse_steps(config.profile));
    return {};
}

Result<StepRange> parse_steps(std::string_view text) {
    // A trace of a step has some 100 kB.
    constexpr std::int64_t kStepsMax = 1000;
    const auto number = [](std::string_view part, std::int64_t& out) {
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), out);
        return error == std::errc() && end == part.data() + part.size();
    };
    const std::size_t dots = text.find("..");
    const bool is_range = dots != std::string_view::npos;
    StepRange range;
    if (!number(text.substr(0, dots), range.first) ||
        !number(is_range ? text.substr(dots + 2) : text, range.last) || range.first < 1 ||
        range.last < range.first || range.last - range.first >= kStepsMax)
        return invalid_parameter("profile: '" + std::string(text) +
                                 "' is not FIRST..LAST, e.g. 10..20: steps from 1 on, at most " +
                                 std::to_string(kStepsMax) + " of them");
    return range;
}

Result<std::optional<EarlyStoppingRule>> early_stopping_rule(const TrainConfig& config) {
    const bool wanted = !config.early_stopping.empty() || config.patience.has_value() ||
                        config.stopping_threshold.has_value() ||
                        config.divergence_threshold.has_value() || config.baseline.has_value();
    if (!wanted) return std::optional<EarlyStoppingRule>();
    TUNE_TRY(rule, parse_early_stopping(config.early_stopping.empty() ? "val_loss:min"
                                                                      : config.early_stopping));
    rule.min_delta = config.min_delta;
    rule.patience = config.patience.value_or(rule.patience);
    rule.stopping_threshold = config.stopping_threshold;
    rule.divergence_threshold = config.divergence_threshold;
    rule.compat = config.compat;
    rule.baseline = config.baseline;
    rule.start_from_epoch = config.start_from_epoch;
    if (rule.compat == Compat::kKeras) {
        if (rule.stopping_threshold || rule.divergence_threshold)
            return invalid_parameter(
                "compat keras has no thresholds: stopping-threshold and "
                "divergence-threshold are Lightning's");
        rule.patience = config.patience.value_or(0);
    }
    return std::optional<EarlyStoppingRule>(rule);
}

double batch_ratio(const TrainConfig& config) {
    const std::int64_t base =
        config.base_batch_size > 0 ? config.base_batch_size : config.batch_size;
    return static_cast<double>(config.batch_size) / static_cast<double>(base);
}

AdamSettings adam_settings(const TrainConfig& config) {
    const AdamSettings settings{.beta1 = config.beta1, .beta2 = config.beta2, .eps = config.eps};
    const double k = batch_ratio(config);
    return config.lr_scaling == LrScaling::kAdamSde && k != 1.0 ? scaled_adam(settings, k)
                                                                : settings;
}

LearningRate learning_rate(const TrainConfig& config, std::int64_t steps_per_epoch) {
    const std::int64_t base =
        config.base_batch_size > 0 ? config.base_batch_size : config.batch_size;
    const double k = batch_ratio(config);
    // Warm-up covers the same number of samples whatever the batch size is.
    const double warmup = config.warmup_steps > 0
                              ? static_cast<double>(config.warmup_steps) / k
                              : config.warmup_epochs * static_cast<double>(steps_per_epoch);
    return {.base = config.lr,
            .effective = scaled_lr(config.lr, config.lr_scaling, config.batch_size, base),
            .schedule = config.schedule,
            .warmup_steps = std::llround(warmup),
            .total_steps = config.epochs * steps_per_epoch,
            .floor = config.lr_floor,
            .step_steps = std::max<std::int64_t>(config.step_epochs * steps_per_epoch, 1),
            .step_factor = config.step_factor};
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
        // A parameter that did not exist then did what its default does now.
        const std::string then = record.is_object()
                                     ? record.value(parameter.name, parameter.get(TrainConfig{}))
                                     : std::string();
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
