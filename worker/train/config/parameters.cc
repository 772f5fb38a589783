// The table of parameters: name, range, meaning.

#include <charconv>
#include <cmath>

#include "base/text/number_text.h"
#include "worker/train/config/config.h"

namespace tune::train {
namespace {

constexpr std::int64_t kSeedMax = std::int64_t{1} << 62;  // what the loader takes

constexpr Reach kOnlyHow = Reach::kOnlyHow;
constexpr Reach kResult = Reach::kResult;
constexpr Reach kNetwork = Reach::kNetwork;

Error wrong_value(const std::string& name, std::string_view value, const std::string& expected) {
    return Error{Code::kInvalidParameterValue,
                 name + ": '" + std::string(value) + "' is not " + expected};
}

template <class Number>
bool parse_number(std::string_view text, Number& out) {
    if (text.starts_with('+')) text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc() && end == text.data() + text.size();
}

/// Values v with low <= v < high (low < v when `open`).
struct Range {
    double low;
    double high;
    bool open = false;

    [[nodiscard]] bool holds(double v) const {
        return std::isfinite(v) && (open ? v > low : v >= low) && v < high;
    }
    [[nodiscard]] std::string text() const {
        if (!std::isfinite(low)) return "a finite number";
        std::string result = open ? "a number above " : "a number from ";
        result += shortest_text(low);
        if (std::isfinite(high)) result += std::string(open ? " and" : "") + " below ";
        if (std::isfinite(high)) result += shortest_text(high);
        return result;
    }
};

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

class Builder {
public:
    std::vector<Parameter> table;

    void group(std::string name) { group_ = std::move(name); }

    void text(std::string name, std::string TrainConfig::*field, std::string type, Reach reach,
              std::string help) {
        Parameter& p = add(std::move(name), std::move(type), reach, std::move(help));
        p.set = [field](TrainConfig& config, std::string_view value) -> Result<void> {
            config.*field = std::string(value);
            return {};
        };
        p.get = [field](const TrainConfig& config) { return config.*field; };
    }

    template <class Field>  // std::int64_t or std::optional<std::int64_t>
    void integer(std::string name, Field TrainConfig::*field, std::int64_t low, std::int64_t high,
                 Reach reach, std::string help) {
        Parameter& p = add(name, "INT", reach, std::move(help));
        p.set = [=](TrainConfig& config, std::string_view value) -> Result<void> {
            std::int64_t number = 0;
            if (!parse_number(value, number) || number < low || number > high)
                return wrong_value(
                    name, value,
                    "an integer from " + std::to_string(low) + " to " + std::to_string(high));
            config.*field = number;
            return {};
        };
        p.get = [field](const TrainConfig& config) { return integer_text(config.*field); };
    }

    template <class Field>  // double or std::optional<double>
    void real(std::string name, Field TrainConfig::*field, Range range, Reach reach,
              std::string help) {
        Parameter& p = add(name, "FLOAT", reach, std::move(help));
        p.set = [=](TrainConfig& config, std::string_view value) -> Result<void> {
            double number = 0;
            if (!parse_number(value, number) || !range.holds(number))
                return wrong_value(name, value, range.text());
            config.*field = number;
            return {};
        };
        p.get = [field](const TrainConfig& config) { return real_text(config.*field); };
    }

    /// `names` in the order of the enumerators.
    template <class Enum>
    void choice(std::string name, Enum TrainConfig::*field, std::vector<std::string> names,
                Reach reach, std::string help) {
        std::string type;
        for (const std::string& each : names) type += type.empty() ? each : "|" + each;
        Parameter& p = add(name, type, reach, std::move(help));
        p.set = [=](TrainConfig& config, std::string_view value) -> Result<void> {
            for (std::size_t i = 0; i < names.size(); ++i) {
                if (value != names[i]) continue;
                config.*field = static_cast<Enum>(i);
                return {};
            }
            return wrong_value(name, value, "one of " + type);
        };
        p.get = [=](const TrainConfig& config) {
            return names[static_cast<std::size_t>(config.*field)];
        };
    }

    void flag(std::string name, bool TrainConfig::*field, std::string help) {
        Parameter& p = add(name, "true|false", kResult, std::move(help));
        p.set = [=](TrainConfig& config, std::string_view value) -> Result<void> {
            if (value != "true" && value != "false" && value != "1" && value != "0")
                return wrong_value(name, value, "true or false");
            config.*field = value == "true" || value == "1";
            return {};
        };
        p.get = [field](const TrainConfig& config) { return config.*field ? "true" : "false"; };
    }

    void alias(std::string name) { table.back().aliases.push_back(std::move(name)); }

private:
    Parameter& add(std::string name, std::string type, Reach reach, std::string help) {
        Parameter p;
        p.name = std::move(name);
        p.type = std::move(type);
        p.group = group_;
        p.help = std::move(help);
        p.reach = reach;
        return table.emplace_back(std::move(p));
    }

    static std::string integer_text(std::int64_t value) { return std::to_string(value); }
    static std::string integer_text(const std::optional<std::int64_t>& value) {
        return value ? std::to_string(*value) : std::string();
    }
    static std::string real_text(double value) { return shortest_text(value); }
    static std::string real_text(const std::optional<double>& value) {
        return value ? shortest_text(*value) : std::string();
    }

    std::string group_;
};

void add_data(Builder& b) {
    b.group("Data");
    b.text("data", &TrainConfig::data, "DIR", kOnlyHow,
           "MDS data set with a subdirectory for each split");
    b.text("train-split", &TrainConfig::train_split, "NAME", kNetwork, "split to train on");
    b.text("val-split", &TrainConfig::val_split, "NAME", kNetwork, "split to validate on");
    b.text("label", &TrainConfig::label, "COLUMN", kNetwork,
           "column to predict; an integer is a class, a float a value "
           "(default: label, target, class or y)");
    b.alias("label-column");
    b.text("features", &TrainConfig::features, "COLUMN,...", kNetwork,
           "columns to predict from (default: every other numeric one)");
    b.alias("image");
    b.alias("image-column");
    b.text("shape", &TrainConfig::shape, "H,W[,C]", kNetwork,
           "shape of one sample (default: as stored)");
    b.integer("classes", &TrainConfig::classes, 0, 1'000'000, kNetwork,
              "number of classes; 0: counted in the train split");
    b.choice("normalize", &TrainConfig::normalize, {"standard", "none"}, kNetwork,
             "standard: each column to mean 0 and deviation 1, measured on the train split");
    b.integer("loader-threads", &TrainConfig::loader_threads, 0, 256, kOnlyHow,
              "threads that decode ahead; 0: the training thread decodes");
}

void add_model(Builder& b) {
    b.group("Model");
    b.choice("model", &TrainConfig::model, {"mlp", "cnn"}, kNetwork,
             "mlp: depth hidden layers of width units; cnn: depth 3x3 convolutions, the first of "
             "width channels, doubled and pooled while the image allows");
    b.integer("width", &TrainConfig::width, 1, 1'000'000, kNetwork, "units or channels");
    b.integer("depth", &TrainConfig::depth, 0, 1000, kNetwork, "hidden layers");
    b.real("dropout", &TrainConfig::dropout, {0.0, 1.0}, kResult,
           "fraction of the hidden units that is dropped in a training step");
}

void add_optimisation(Builder& b) {
    b.group("Optimisation");
    b.integer("epochs", &TrainConfig::epochs, 1, 1'000'000, kOnlyHow,
              "number of passes over the data");
    b.integer("batch-size", &TrainConfig::batch_size, 1, 1'000'000, kResult,
              "samples per optimizer step");
    b.alias("batch");
    b.integer("base-batch-size", &TrainConfig::base_batch_size, 0, 1'000'000, kResult,
              "the batch size that lr is meant for; 0: batch-size");
    b.choice("lr-scaling", &TrainConfig::lr_scaling, {"sqrt", "linear", "none"}, kResult,
             "with k = batch-size / base-batch-size: lr * sqrt(k), lr * k or lr");
    b.real("lr", &TrainConfig::lr, {0.0, kNoLimit, true}, kResult,
           "learning rate at base-batch-size");
    b.alias("learning-rate");
    b.choice("schedule", &TrainConfig::schedule, {"constant", "cosine"}, kResult,
             "of the learning rate after warm-up; cosine falls to 0 at the last step");
    b.real("warmup-epochs", &TrainConfig::warmup_epochs, {0.0, 1e6}, kResult,
           "linear warm-up of the learning rate, in epochs (fractions too)");
    b.integer("warmup-steps", &TrainConfig::warmup_steps, 0, 1'000'000'000, kResult,
              "the same in steps of base-batch-size samples");
    b.choice("optimizer", &TrainConfig::optimizer, {"adamw", "sgd"}, kNetwork, "");
    b.real("momentum", &TrainConfig::momentum, {0.0, 1.0}, kResult, "of sgd");
    b.flag("nesterov", &TrainConfig::nesterov, "Nesterov momentum, of sgd");
    b.real("weight-decay", &TrainConfig::weight_decay, {0.0, kNoLimit}, kResult,
           "decoupled in adamw (default: 0.01), added to the gradient in sgd (default: 0)");
    b.real("beta1", &TrainConfig::beta1, {0.0, 1.0}, kResult, "of adamw");
    b.real("beta2", &TrainConfig::beta2, {0.0, 1.0}, kResult, "of adamw");
    b.real("eps", &TrainConfig::eps, {0.0, kNoLimit}, kResult, "of adamw");
    b.integer("seed", &TrainConfig::seed, 0, kSeedMax, kResult,
              "of weights, order and dropout (default: the low 62 bits of TUNE_SEED, else 0)");
}

void add_stopping(Builder& b) {
    b.group("Early stopping (on as soon as one of these is given)");
    b.text("early-stopping", &TrainConfig::early_stopping, "METRIC:MODE", kResult,
           "what to watch, e.g. val_accuracy:max (default: val_loss:min)");
    b.integer("patience", &TrainConfig::patience, 0, 1'000'000, kOnlyHow,
              "validations without improvement before training stops (default: 3)");
    b.real("min-delta", &TrainConfig::min_delta, {0.0, kNoLimit}, kResult,
           "an improvement is more than this");
    b.real("stopping-threshold", &TrainConfig::stopping_threshold, {-kNoLimit, kNoLimit}, kOnlyHow,
           "stop when the metric is better than this");
    b.real("divergence-threshold", &TrainConfig::divergence_threshold, {-kNoLimit, kNoLimit},
           kOnlyHow, "stop when the metric is worse than this");
    b.integer("val-every", &TrainConfig::val_every, 1, 1'000'000, kResult,
              "epochs between validations; the last epoch always has one");
}

void add_running(Builder& b) {
    b.group("Running");
    b.text("checkpoint-dir", &TrainConfig::checkpoint_dir, "DIR", kOnlyHow,
           "last.safetensors and best.safetensors; training resumes from the former "
           "(default: TUNE_CHECKPOINT_DIR, else none)");
    b.text("resume-from", &TrainConfig::resume_from, "DIR", kOnlyHow,
           "start from what another training left in its checkpoint-dir, unless this one has a "
           "checkpoint already (default: TUNE_RESUME_FROM, else from nothing)");
    b.integer("until-epoch", &TrainConfig::until_epoch, 0, 1'000'000, kOnlyHow,
              "end after this one of the epochs, as the schedule has them; 0: the last "
              "(default: TUNE_STEP_TO, which epochs then is, too, unless given)");
    b.integer("checkpoint-every", &TrainConfig::checkpoint_every, 0, 1'000'000'000, kOnlyHow,
              "steps between checkpoints within an epoch; each epoch ends with one");
    b.integer("log-every", &TrainConfig::log_every, 0, 1'000'000'000, kOnlyHow,
              "steps between lines with train_loss_step; 0: epochs only");
    b.integer("threads", &TrainConfig::threads, 1, 1024, kOnlyHow,
              "number of LibTorch threads (default: OMP_NUM_THREADS, else 1)");
}

std::vector<Parameter> build() {
    Builder builder;
    add_data(builder);
    add_model(builder);
    add_optimisation(builder);
    add_stopping(builder);
    add_running(builder);
    return std::move(builder.table);
}

}  // namespace

std::span<const Parameter> parameters() {
    static const std::vector<Parameter> table = build();
    return table;
}

}  // namespace tune::train
