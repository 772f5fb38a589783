#pragma once
// What `tune-trainer train` is told: one struct, and one table that names each field, checks it and
// explains it. Command line, YAML file, --help and the checkpoint's own record all use that table.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "worker/train/early_stopping.h"
#include "worker/train/learning_rate.h"

namespace tune::train {

enum class ModelKind {
#define TUNE_MODEL(kind, name, make, help) kind,
#include "worker/train/models/models.inc"
#undef TUNE_MODEL
};
enum class TaskKind { kAuto, kClassification, kRegression, kLanguage };
enum class LossKind { kAuto, kCrossEntropy, kMse, kMae, kHuber, kBce };
enum class InputKind { kAuto, kNumbers, kTokens };
enum class Restore { kNothing, kLast, kBest };
/// Whose weights become the model that is logged; auto: the best's, of a model that is not large.
enum class LogModel { kAuto, kBest, kLast, kNone };
enum class FindBatchSize { kOff, kMemory, kThroughput };
/// The first layers of a resnet: 7x7 and pooling, or 3x3 for small images.
enum class Stem { kImagenet, kSmall };
enum class OptimizerKind { kAdamW, kSgd };
enum class Normalize { kStandard, kNone };
/// Where bytes and tokens become numbers.
enum class ConvertOn { kAuto, kHost, kDevice };
enum class DeviceKind { kCpu, kCuda, kAuto };
/// What matrix products and convolutions are computed in; weights are float32 in each but float64,
/// in which everything is double.
enum class Precision { kFloat32, kBfloat16, kFloat16, kTf32, kFloat64 };
/// Of tf32, a GPU's own format of 19 bits, tensors know nothing.
[[nodiscard]] constexpr bool has_16_bits(Precision precision) {
    return precision == Precision::kBfloat16 || precision == Precision::kFloat16;
}

/// The parameters of one training run. The defaults are those that `--help` shows.
struct TrainConfig {
    // Data
    std::string data = {};        ///< a folder, or a URL (loader/source/open_source.h)
    std::string data_cache = {};  ///< where data of a URL is kept; empty: the loader's default
    std::int64_t data_cache_limit = 0;  ///< bytes; 0: no limit
    std::string train_split = "train";
    std::string val_split = "val";
    std::string label = {};     ///< empty: found by name in the index
    std::string features = {};  ///< comma-separated columns; empty: every numeric one
    std::string shape = {};     ///< of one sample, e.g. "8,8"; empty: as stored
    std::int64_t classes = 0;   ///< 0: counted in the train split
    InputKind input = InputKind::kAuto;
    std::int64_t vocabulary = 0;  ///< of tokens; 0: counted in the train split
    Normalize normalize = Normalize::kStandard;
    std::int64_t loader_threads = 0;  ///< 0: decode in the training thread
    ConvertOn convert_on = ConvertOn::kAuto;

    // Model
    ModelKind model = ModelKind::kMlp;
    std::int64_t width = 128;
    std::int64_t depth = 2;
    double dropout = 0.0;
    std::int64_t heads = 4;  ///< of attention
    Stem stem = Stem::kImagenet;
    std::string module = {};  ///< a TorchScript file

    // Task
    TaskKind task = TaskKind::kAuto;
    LossKind loss = LossKind::kAuto;
    double label_smoothing = 0.0;  ///< of cross entropy
    double huber_delta = 1.0;      ///< in deviations of the label
    std::string metrics = {};      ///< comma-separated; empty: those of the task

    // Optimisation
    std::int64_t epochs = 20;
    std::int64_t batch_size = 32;
    std::int64_t base_batch_size = 0;  ///< 0: batch_size, so that nothing is scaled
    LrScaling lr_scaling = LrScaling::kSqrt;
    double lr = 1e-3;  ///< at base_batch_size
    LrSchedule schedule = LrSchedule::kConstant;
    double lr_floor = 0.0;          ///< part of the rate at which cosine and linear end
    std::int64_t step_epochs = 30;  ///< of schedule step
    double step_factor = 0.1;
    double warmup_epochs = 0.0;
    std::int64_t warmup_steps = 0;  ///< at base_batch_size; at most one of the two
    OptimizerKind optimizer = OptimizerKind::kAdamW;
    double momentum = 0.9;                    ///< SGD only
    bool nesterov = false;                    ///< SGD only
    std::optional<double> weight_decay = {};  ///< as PyTorch: 0.01 in AdamW, 0 in SGD
    double beta1 = 0.9;                       ///< AdamW only
    double beta2 = 0.999;                     ///< AdamW only
    double eps = 1e-8;                        ///< AdamW only
    double clip_norm = 0.0;                   ///< of all gradients together; 0: none
    double clip_value = 0.0;                  ///< of each number of a gradient; 0: none
    std::int64_t accumulate = 1;              ///< parts into which a batch is cut
    FindBatchSize find_batch_size = FindBatchSize::kOff;
    bool channels_last = false;
    bool deterministic = false;
    std::int64_t seed = 0;

    // Stopping
    std::string early_stopping = {};  ///< metric:mode; empty: on when a rule below is given
    std::optional<std::int64_t> patience = {};
    double min_delta = 0.0;
    std::optional<double> stopping_threshold = {};
    std::optional<double> divergence_threshold = {};
    std::int64_t val_every = 1;  ///< epochs
    Compat compat = Compat::kLightning;
    std::optional<double> baseline = {};
    std::int64_t start_from_epoch = 0;
    Restore restore = Restore::kNothing;

    // Transfer learning
    std::string init_from = {};  ///< a file of weights, or a folder that holds one
    bool new_head = false;
    std::string freeze = {};    ///< a regular expression for names of parameters
    std::string unfreeze = {};  ///< EPOCH:REGEX,...
    double lr_decay = 1.0;      ///< of the rate, from each layer to the one before it

    // Running
    std::string checkpoint_dir = {};    ///< empty: no checkpoints
    std::string resume_from = {};       ///< another run's checkpoint_dir, to start from; or empty
    std::int64_t until_epoch = 0;       ///< where to end before `epochs`; 0: there
    std::int64_t checkpoint_every = 0;  ///< steps; 0: at the end of each epoch only
    std::int64_t checkpoint_best = 1;   ///< epochs whose weights are kept besides the last
    LogModel log_model = LogModel::kAuto;
    std::string model_dir = {};         ///< where that model is left; empty: nowhere
    std::int64_t log_every = 50;        ///< steps; 0: metrics of epochs only
    double stats_every = 0.0;           ///< seconds; 0: no metrics of speed and loader
    std::string tensorboard = {};       ///< a folder for files of events; empty: none
    std::string profile = {};           ///< steps to trace, "10..20"; empty: none
    std::string profile_dir = {};       ///< where the trace goes; empty: here
    std::string profile_request = {};   ///< a file that asks for a trace; empty: nobody can
    std::string artifact_dir = {};      ///< files here are the run's; empty: there is no run
    std::int64_t noise_every = 0;       ///< steps between measurements of the noise; 0: none
    std::string statistics_cache = {};  ///< a folder, or "none"; empty: the user's
    std::int64_t threads = 1;
    DeviceKind device = DeviceKind::kAuto;
    Precision precision = Precision::kFloat32;
    double rank_timeout = 600.0;  ///< seconds; see CollectiveOptions
};

/// How far another value of a parameter reaches, each further than the one before.
enum class Reach {
    kOnlyHow,  ///< how a run goes, not what it yields
    kResult,   ///< a checkpoint made with another value is of another training run
    kNetwork,  ///< and cannot be started from, either
};

/// One parameter: `set` checks and stores a text, `get` gives back the text that `set` accepts.
struct Parameter {
    std::string name;                  ///< as on the command line, without "--"
    std::vector<std::string> aliases;  ///< other accepted names
    std::string type;                  ///< for --help, e.g. "INT", "mlp|cnn"
    std::string group;                 ///< for --help
    std::string help;
    Reach reach = Reach::kResult;
    std::function<Result<void>(TrainConfig&, std::string_view)> set;
    std::function<std::string(const TrainConfig&)> get;
};

/// All parameters, in the order of --help. Built once; thread-safe.
[[nodiscard]] std::span<const Parameter> parameters();

/// The parameter with this name or alias; '_' and '-' are the same. nullptr when there is none.
[[nodiscard]] const Parameter* find_parameter(std::string_view name);

/// Stores `value`. Errors: kInvalidParameterValue for an unknown name (with the nearest known one
/// and the list) or a value out of range (with the range).
[[nodiscard]] Result<void> set_parameter(TrainConfig& config, std::string_view name,
                                         std::string_view value);

/// Sets every `name: value` of a flat YAML mapping; `origin` names it in errors. Errors:
/// kInvalidParameterValue with line and column of what is wrong.
[[nodiscard]] Result<void> set_from_yaml(TrainConfig& config, const std::string& text,
                                         const std::string& origin);

/// Whether the next token is to be predicted, and not a label.
[[nodiscard]] bool is_language(const TrainConfig& config);

/// What no single field can tell, e.g. that `data` is given. Errors: kInvalidParameterValue.
[[nodiscard]] Result<void> validate(const TrainConfig& config);

/// The rule for early stopping that `config` asks for, or nothing when it asks for none. Errors:
/// kInvalidParameterValue for a metric or mode that does not exist.
[[nodiscard]] Result<std::optional<EarlyStoppingRule>> early_stopping_rule(
    const TrainConfig& config);

/// The batch size over the one that the rate is meant for.
[[nodiscard]] double batch_ratio(const TrainConfig& config);

/// AdamW's settings after lr_scaling.
[[nodiscard]] AdamSettings adam_settings(const TrainConfig& config);

/// The rule for the learning rate, for epochs of `steps_per_epoch` optimizer steps.
[[nodiscard]] LearningRate learning_rate(const TrainConfig& config, std::int64_t steps_per_epoch);

/// {name: text} of the parameters that decide the result; kept in checkpoints.
[[nodiscard]] Json result_deciding(const TrainConfig& config);

/// Checks that a checkpoint's record matches `config`. Errors: kInvalidParameterValue that names
/// each difference with both values.
[[nodiscard]] Result<void> check_same_training(const TrainConfig& config, const Json& record);

/// The same of what a run that goes on from another one's weights cannot change: the data, the
/// network, and the kind of optimizer.
[[nodiscard]] Result<void> check_same_network(const TrainConfig& config, const Json& record);

/// "8,8" -> {8, 8}; "8x8" too. Errors: kInvalidParameterValue.
[[nodiscard]] Result<std::vector<std::int64_t>> parse_shape(std::string_view text);

/// Optimizer steps as the lines count them: the first one is 1.
struct StepRange {
    std::int64_t first = 1;
    std::int64_t last = 1;
};

/// "10..20", or "10" for one step. Errors: kInvalidParameterValue; also for more than 1,000 steps.
[[nodiscard]] Result<StepRange> parse_steps(std::string_view text);

/// Splits "a,b" into its non-empty parts, without blanks around them.
[[nodiscard]] std::vector<std::string> split_list(std::string_view text);

}  // namespace tune::train
