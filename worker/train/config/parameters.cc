// The table of the trainer's parameters: name, type, range, meaning, and how far a change of it
// reaches.
//
// From a row come the flag, the key of a configuration file, the line of --help and the entry in a
// checkpoint, so none of them can disagree. `Reach` says what a resumed run may change: how it
// runs, its result, or the network itself, which no checkpoint of another one fits.

#include <cmath>
#include <optional>

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
    const std::optional<Number> found = number_from_text<Number>(text);
    if (found) out = *found;
    return found.has_value();
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
    b.text("data", &TrainConfig::data, "DIR|URL", kOnlyHow,
           "MDS data set with a subdirectory for each split, on this machine or at s3://, gs://, "
           "az://, hdfs://, hf://, https://, ...");
    b.text("data-cache", &TrainConfig::data_cache, "DIR", kOnlyHow,
           "where shards of a URL are kept for later epochs and other trials (default: a folder "
           "for the URL in TUNE_CACHE_DIR)");
    b.integer("data-cache-limit", &TrainConfig::data_cache_limit, 0, 1'000'000'000'000'000,
              kOnlyHow, "bytes that the cache of one split holds; 0: no limit");
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
    b.choice("input", &TrainConfig::input, {"auto", "numbers", "tokens"}, kNetwork,
             "what the features are; auto: tokens for gpt, and for a transformer that reads one "
             "column of lists of integers");
    b.integer("vocabulary", &TrainConfig::vocabulary, 0, 100'000'000, kNetwork,
              "number of tokens; 0: counted in the train split");
    b.choice("normalize", &TrainConfig::normalize, {"standard", "none"}, kNetwork,
             "standard: each column to mean 0 and deviation 1, measured on the train split");
    b.integer("loader-threads", &TrainConfig::loader_threads, 0, 256, kOnlyHow,
              "threads that decode ahead; 0: the training thread decodes");
    b.choice("convert-on", &TrainConfig::convert_on, {"auto", "host", "device"}, kOnlyHow,
             "where images of bytes are standardised and tokens widened, with the same numbers; "
             "auto: the device where it is no CPU, so that less is copied");
}

void add_model(Builder& b) {
    b.group("Model");
    std::string models;
#define TUNE_MODEL(kind, name, make, help) \
    if (*(help) != '\0') models += std::string(models.empty() ? "" : "; ") + (name) + ": " + (help);
#include "worker/train/models/models.inc"
#undef TUNE_MODEL
    b.choice("model", &TrainConfig::model,
             {
#define TUNE_MODEL(kind, name, make, help) name,
#include "worker/train/models/models.inc"
#undef TUNE_MODEL
             },
             kNetwork, models);
    b.text("module", &TrainConfig::module, "FILE", kNetwork,
           "the module to train, of torch.jit.script(...).save, for model torchscript");
    b.integer("width", &TrainConfig::width, 1, 1'000'000, kNetwork, "units or channels");
    b.integer("depth", &TrainConfig::depth, 0, 1000, kNetwork, "hidden layers");
    b.integer("heads", &TrainConfig::heads, 1, 1000, kNetwork, "of attention; divide the width");
    b.choice("stem", &TrainConfig::stem, {"imagenet", "small"}, kNetwork,
             "first layers of a resnet; small: 3x3 without pooling, for images of about 32 pixels");
    b.real("dropout", &TrainConfig::dropout, {0.0, 1.0}, kResult,
           "fraction of the hidden units that is dropped in a training step");
}

void add_task(Builder& b) {
    b.group("Task");
    b.choice("task", &TrainConfig::task, {"auto", "classification", "regression", "language"},
             kNetwork, "auto: language for gpt, else what the type of the label says");
    b.choice("loss", &TrainConfig::loss, {"auto", "cross-entropy", "mse", "mae", "huber", "bce"},
             kNetwork,
             "auto: cross-entropy for classes and tokens, mse for values; bce: labels are "
             "probabilities, or 0 and 1");
    b.real("label-smoothing", &TrainConfig::label_smoothing, {0.0, 1.0}, kResult,
           "of cross-entropy: this much goes to all classes alike");
    b.real("huber-delta", &TrainConfig::huber_delta, {0.0, kNoLimit, true}, kResult,
           "where huber turns from squares to absolute values, in deviations of the label");
    b.text("metrics", &TrainConfig::metrics, "NAME,...", kOnlyHow,
           "of validation, besides val_loss: accuracy, top5, perplexity, mae, rmse "
           "(default: accuracy, perplexity or mae, as the task is)");
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
    b.choice("lr-scaling", &TrainConfig::lr_scaling, {"sqrt", "linear", "none", "adam_sde"},
             kResult,
             "with k = batch-size / base-batch-size: lr * sqrt(k), lr * k or lr; adam_sde: sqrt, "
             "and betas and eps of adamw follow");
    b.real("lr", &TrainConfig::lr, {0.0, kNoLimit, true}, kResult,
           "learning rate at base-batch-size");
    b.alias("learning-rate");
    b.choice("schedule", &TrainConfig::schedule,
             {"constant", "cosine", "linear", "step", "one-cycle"}, kResult,
             "of the learning rate after warm-up; cosine and linear fall to lr-floor at the last "
             "step, step by step-factor each step-epochs; one-cycle is torch's OneCycleLR");
    b.real("lr-floor", &TrainConfig::lr_floor, {0.0, 1.0}, kResult,
           "part of the learning rate at which cosine and linear end");
    b.integer("step-epochs", &TrainConfig::step_epochs, 1, 1'000'000, kResult,
              "epochs between drops of schedule step");
    b.real("step-factor", &TrainConfig::step_factor, {0.0, kNoLimit, true}, kResult,
           "what a drop multiplies the learning rate by");
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
    b.real("clip-norm", &TrainConfig::clip_norm, {0.0, kNoLimit}, kResult,
           "gradients longer than this, all together, are scaled down to it; 0: none are");
    b.real("clip-value", &TrainConfig::clip_value, {0.0, kNoLimit}, kResult,
           "each number of a gradient stays within this of 0; 0: any");
    b.integer(
        "accumulate", &TrainConfig::accumulate, 1, 1'000'000, kResult,
        "parts of a batch that are computed one after the other, in less memory; doubled when "
        "memory runs out");
    b.choice("find-batch-size", &TrainConfig::find_batch_size, {"off", "memory", "throughput"},
             kResult,
             "before training, take the largest batch that fits, or the fastest; batch-size is the "
             "first one tried");
    b.flag("channels-last", &TrainConfig::channels_last,
           "weights of convolutions lie with the channels last, which many kernels prefer");
    b.flag("deterministic", &TrainConfig::deterministic,
           "refuse kernels that may give other bits from run to run");
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
    b.choice(
        "compat", &TrainConfig::compat, {"lightning", "keras"}, kResult,
        "whose rules: keras waits 0 validations by default, never stops in the first epoch and "
        "has no thresholds");
    b.real("baseline", &TrainConfig::baseline, {-kNoLimit, kNoLimit}, kResult,
           "an improvement that is not better than this does not end the waiting");
    b.integer("start-from-epoch", &TrainConfig::start_from_epoch, 0, 1'000'000, kResult,
              "the first epoch, counted from 0, whose validation is looked at");
    b.choice("restore", &TrainConfig::restore, {"nothing", "last", "best"}, kOnlyHow,
             "the epoch whose weights are left as model.safetensors in checkpoint-dir at the end");
    b.integer("val-every", &TrainConfig::val_every, 1, 1'000'000, kResult,
              "epochs between validations; the last epoch always has one");
}

void add_transfer(Builder& b) {
    b.group("Transfer learning");
    b.text("init-from", &TrainConfig::init_from, "FILE", kResult,
           "weights to start from: safetensors, TorchScript, or a folder with model.safetensors or "
           "best.safetensors; tensors are matched by name");
    b.flag("new-head", &TrainConfig::new_head,
           "leave the last layer as it was drawn, though the file has one that fits");
    b.text("freeze", &TrainConfig::freeze, "REGEX", kResult,
           "parameters whose names match are not trained; a frozen BatchNorm keeps its statistics");
    b.text("unfreeze", &TrainConfig::unfreeze, "EPOCH:REGEX,...", kResult,
           "from the beginning of that epoch, counted from 0, train these too");
    b.real("lr-decay", &TrainConfig::lr_decay, {0.0, 1.0 + 1e-9, true}, kResult,
           "factor of the learning rate from each layer to the one before it (0.9: the layers near "
           "the input move slower)");
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
    b.integer("checkpoint-best", &TrainConfig::checkpoint_best, 1, 1000, kOnlyHow,
              "epochs whose weights are kept besides the last checkpoint: the best one's as "
              "best.safetensors, and of several each as best-epoch-N.safetensors");
    b.choice("log-model", &TrainConfig::log_model, {"auto", "best", "last", "none"}, kOnlyHow,
             "the epoch whose model is left in model-dir at the end, as MLflow's files; auto: the "
             "best one's, of a model of at most 10 MB");
    b.text("model-dir", &TrainConfig::model_dir, "DIR", kOnlyHow,
           "folder for that model, which must not exist or be empty or hold such a model "
           "(default: TUNE_MODEL_DIR, from where the agent logs it, else none)");
    b.integer("log-every", &TrainConfig::log_every, 0, 1'000'000'000, kOnlyHow,
              "steps between lines with train_loss_step; 0: epochs only");
    b.real("stats-every", &TrainConfig::stats_every, {0.0, 1e9}, kOnlyHow,
           "seconds between lines with samples_per_second and where the loader's time went; 0: "
           "none (default: 10 in a trial, else 0)");
    b.text("tensorboard", &TrainConfig::tensorboard, "DIR", kOnlyHow,
           "folder for TensorBoard's event files, one per process");
    b.text("profile", &TrainConfig::profile, "FIRST..LAST", kOnlyHow,
           "write a trace of these optimizer steps, counted from 1, for Perfetto or Chrome");
    b.text("profile-dir", &TrainConfig::profile_dir, "DIR", kOnlyHow,
           "folder for the trace (default: profile in TUNE_ARTIFACT_DIR, whose files become "
           "artifacts of the run, else in checkpoint-dir, else here)");
    b.integer("noise-every", &TrainConfig::noise_every, 0, 1'000'000'000, kResult,
              "steps between measurements of the gradient noise scale, for which a batch is cut in "
              "two; 0: none");
    b.text("statistics-cache", &TrainConfig::statistics_cache, "DIR", kOnlyHow,
           "where means, deviations and numbers of classes are kept for the next run on the same "
           "data; none: nowhere (default: tune/statistics in XDG_CACHE_HOME, else in ~/.cache)");
    b.integer("threads", &TrainConfig::threads, 1, 1024, kOnlyHow,
              "number of LibTorch threads (default: OMP_NUM_THREADS, else 1)");
    b.choice("precision", &TrainConfig::precision, {"float32", "bf16", "fp16", "tf32", "float64"},
             kResult,
             "of matrix products and convolutions; fp16 with a scale that adapts itself; tf32: "
             "float32 whose products a GPU may round to 10 bits, on a CPU float32; float64: all of "
             "it in double precision, weights too, to tell rounding from a fault");
    b.choice("device", &TrainConfig::device, {"cpu", "cuda", "auto"}, kOnlyHow,
             "auto: a GPU where there is one. No GPU has run this version yet");
    b.real("rank-timeout", &TrainConfig::rank_timeout, {0.0, 1e6, true}, kOnlyHow,
           "seconds that a rank waits for the others, where several train one model");
}

std::vector<Parameter> build() {
    Builder builder;
    add_data(builder);
    add_model(builder);
    add_task(builder);
    add_optimisation(builder);
    add_stopping(builder);
    add_transfer(builder);
    add_running(builder);
    return std::move(builder.table);
}

}  // namespace

std::span<const Parameter> parameters() {
    static const std::vector<Parameter> table = build();
    return table;
}

}  // namespace tune::train
