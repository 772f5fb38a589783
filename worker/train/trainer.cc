// The loop of epochs and steps. Everything that a stop may interrupt is counted in one progress
// record that goes into the checkpoint with the weights, the optimizer and the loader's position; a
// run that is stopped, killed or preempted and started again therefore takes the same steps with
// the same samples. Signals only set a flag that is looked at between steps.

#include "worker/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/text/counted.h"
#include "loader/dataset.h"
#include "worker/train/checkpoint/checkpoint.h"
#include "worker/train/inputs.h"
#include "worker/train/learner.h"
#include "worker/train/recorder.h"

namespace tune::train {
namespace {

using loader::Batch;
using loader::Dataset;
using loader::DatasetOptions;

/// Samples of one validation batch, at least: nothing is learnt from them, so larger is cheaper.
constexpr std::int64_t kValBatchMin = 256;

DatasetOptions dataset_options(const TrainConfig& config, const std::string& split) {
    DatasetOptions options;
    options.directory = config.data;
    options.split = split;
    options.seed = static_cast<std::uint64_t>(config.seed);
    options.threads = static_cast<int>(config.loader_threads);
    return options;
}

/// Chooses the columns of the train split and measures them.
Result<Inputs> inputs_of_data(const TrainConfig& config) {
    DatasetOptions options = dataset_options(config, config.train_split);
    TUNE_TRY(whole, Dataset::open(options));
    TUNE_TRY(inputs, choose_inputs(config, whole->columns()));
    options.columns = inputs.column_names();
    options.batch_size = kValBatchMin;
    options.shuffle = whole->sample_count() > kMeasuredSamplesMax;
    TUNE_TRY(dataset, Dataset::open(options));
    TUNE_TRY_VOID(measure_inputs(config, *dataset, inputs));
    return inputs;
}

class Trainer {
public:
    Trainer(TrainConfig config, int metrics_fd, const std::atomic<bool>& stop)
        : config_(std::move(config)), metrics_fd_(metrics_fd), stop_(stop) {}

    /// Everything that can be wrong before the first step.
    Result<void> open();
    Result<Outcome> run();

private:
    Result<std::optional<Safetensors>> open_checkpoints();
    [[nodiscard]] Result<Safetensors> open_parent() const;
    Result<void> open_data();
    Result<void> open_rules();
    Result<void> restore(const Safetensors& file);
    Result<void> continue_from(const Safetensors& parent);

    [[nodiscard]] std::int64_t last_epoch() const;
    [[nodiscard]] bool finished() const;
    [[nodiscard]] bool interrupted() const { return stop_.load() || recorder_->reader_gone(); }
    [[nodiscard]] bool validation_is_due() const;
    Result<bool> train_epoch();
    Result<void> step(const Batch& batch);
    Result<bool> validate(Evaluation& sums);
    void end_epoch(const std::optional<Evaluation>& evaluation);
    [[nodiscard]] std::vector<NamedValue> metrics_of(
        const std::optional<Evaluation>& evaluation) const;
    [[nodiscard]] StopReason check_stop(std::optional<double> watched);
    void save(bool with_best);
    void report_start();
    [[nodiscard]] Outcome outcome(bool preempted);

    const TrainConfig config_;
    const int metrics_fd_;
    const std::atomic<bool>& stop_;

    std::optional<CheckpointDirectory> directory_;
    Record record_;
    Progress& progress_ = record_.progress;
    std::unique_ptr<Dataset> train_data_;
    std::unique_ptr<Dataset> val_data_;
    std::unique_ptr<Learner> learner_;
    LearningRate learning_rate_;
    EarlyStoppingRule watched_;  ///< the metric whose best is kept, early stopping or not
    std::optional<EarlyStopping> early_stopping_;
    Samples samples_;
    std::unique_ptr<Recorder> recorder_;
};

Result<void> Trainer::open() {
    TUNE_TRY(resumed, open_checkpoints());
    std::optional<Safetensors> parent;
    if (resumed) {
        TUNE_TRY(record, read_record(config_, *resumed));
        record_ = std::move(record);
    } else if (!config_.resume_from.empty()) {
        TUNE_TRY(file, open_parent());
        parent = std::move(file);
        TUNE_TRY(record, read_parent(config_, *parent));
        record_ = std::move(record);
    } else {
        TUNE_TRY(inputs, inputs_of_data(config_));
        record_.inputs = std::move(inputs);
    }
    TUNE_TRY_VOID(open_data());
    TUNE_TRY_VOID(open_rules());
    TUNE_TRY(learner, Learner::make(config_, record_.inputs));
    learner_ = std::move(learner);
    if (resumed) TUNE_TRY_VOID(restore(*resumed));
    if (parent) TUNE_TRY_VOID(continue_from(*parent));
    recorder_ = std::make_unique<Recorder>(metrics_fd_, directory_ ? &*directory_ : nullptr);
    // From here on the parent's files are not needed.
    if (parent) save(false);
    return {};
}

Result<std::optional<Safetensors>> Trainer::open_checkpoints() {
    if (config_.checkpoint_dir.empty()) return std::optional<Safetensors>();
    TUNE_TRY(directory, CheckpointDirectory::open(config_.checkpoint_dir));
    directory_.emplace(std::move(directory));
    std::error_code ignored;
    if (!std::filesystem::exists(directory_->last(), ignored)) return std::optional<Safetensors>();
    TUNE_TRY(file, Safetensors::read(directory_->last()));
    return std::optional<Safetensors>(std::move(file));
}

Result<Safetensors> Trainer::open_parent() const {
    const std::filesystem::path path =
        std::filesystem::path(config_.resume_from) / "last.safetensors";
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored))
        return Error{Code::kInvalidParameterValue,
                     "resume-from: there is no checkpoint '" + path.string() + "'"};
    return Safetensors::read(path);
}

Result<void> Trainer::open_data() {
    DatasetOptions options = dataset_options(config_, config_.train_split);
    options.columns = record_.inputs.column_names();
    options.batch_size = config_.batch_size;
    options.shuffle = true;
    TUNE_TRY(train_data, Dataset::open(options));
    if (train_data->sample_count() == 0)
        return Error{Code::kInvalidParameterValue,
                     "split '" + config_.train_split + "' of '" + config_.data + "' is empty"};
    options.split = config_.val_split;
    options.batch_size = std::max(config_.batch_size, kValBatchMin);
    options.shuffle = false;
    TUNE_TRY(val_data, Dataset::open(options));
    if (val_data->sample_count() == 0)
        return Error{Code::kInvalidParameterValue,
                     "split '" + config_.val_split + "' of '" + config_.data + "' is empty"};
    train_data_ = std::move(train_data);
    val_data_ = std::move(val_data);
    return {};
}

Result<void> Trainer::open_rules() {
    learning_rate_ = learning_rate(config_, train_data_->batches_per_epoch());
    TUNE_TRY(rule, early_stopping_rule(config_));
    watched_ = rule.value_or(EarlyStoppingRule{});
    if (rule) early_stopping_.emplace(*rule);
    std::string known;
    for (const NamedValue& metric : metrics_of(Evaluation{})) {
        if (metric.name == watched_.metric) return {};
        if (metric.name != "epoch") known += (known.empty() ? "" : ", ") + metric.name;
    }
    return Error{Code::kInvalidParameterValue, "early-stopping: there is no metric '" +
                                                   watched_.metric + "'; this run has " + known};
}

Result<void> Trainer::restore(const Safetensors& file) {
    TUNE_TRY_VOID(learner_->load_state(file));
    TUNE_TRY_VOID(train_data_->load_state(progress_.loader));
    if (early_stopping_ && progress_.early_stopping)
        early_stopping_->load_state(*progress_.early_stopping);
    std::fprintf(stderr, "resumed from %s: epoch %lld, step %lld\n", directory_->last().c_str(),
                 static_cast<long long>(progress_.epoch), static_cast<long long>(progress_.step));
    return {};
}

/// Steps are counted as if all epochs so far had had today's batch size: the schedule of the rate
/// and the corrections of AdamW go on where they were.
Result<void> Trainer::continue_from(const Safetensors& parent) {
    TUNE_TRY_VOID(learner_->continue_from(parent));
    train_data_->start_epoch(progress_.epoch);
    progress_.step = progress_.epoch * train_data_->batches_per_epoch();
    std::fprintf(stderr, "continues from %s after epoch %lld\n", config_.resume_from.c_str(),
                 static_cast<long long>(progress_.epoch));
    return {};
}

std::int64_t Trainer::last_epoch() const {
    return config_.until_epoch > 0 ? std::min(config_.until_epoch, config_.epochs) : config_.epochs;
}

bool Trainer::finished() const {
    return progress_.stop_reason != StopReason::kNotStopped || progress_.epoch >= last_epoch();
}

bool Trainer::validation_is_due() const {
    const std::int64_t epoch = progress_.epoch + 1;
    return epoch % config_.val_every == 0 || epoch == last_epoch() || !progress_.finite;
}

Result<Outcome> Trainer::run() {
    report_start();
    // Run again after its end: the last metrics are given once more, in case they were lost.
    if (finished() && !progress_.last_metrics.empty())
        recorder_->line(metric_line(progress_.last_metrics, progress_.epoch_reported));
    while (!finished()) {
        if (!progress_.epoch_trained) {
            TUNE_TRY(whole, train_epoch());
            if (!whole) return outcome(true);
        }
        std::optional<Evaluation> evaluation;
        if (validation_is_due()) {
            TUNE_TRY(whole, validate(evaluation.emplace()));
            if (!whole) return outcome(true);
        }
        end_epoch(evaluation);
        if (!finished() && interrupted()) return outcome(true);
    }
    return outcome(false);
}

/// False: interrupted, and a checkpoint is on its way.
Result<bool> Trainer::train_epoch() {
    Batch batch;
    while (progress_.finite) {
        TUNE_TRY(more, train_data_->next(batch));
        if (!more) break;
        TUNE_TRY_VOID(step(batch));
        const bool stop = interrupted();
        if (stop ||
            (config_.checkpoint_every > 0 && progress_.step % config_.checkpoint_every == 0))
            save(false);
        if (stop) return false;
    }
    progress_.epoch_trained = true;
    return true;
}

Result<void> Trainer::step(const Batch& batch) {
    TUNE_TRY_VOID(read_samples(record_.inputs, batch, samples_));
    const double lr = learning_rate_.at(progress_.step);
    TUNE_TRY(loss, learner_->train(samples_, progress_.step, lr));
    ++progress_.step;
    progress_.loss_sum += static_cast<double>(loss) * static_cast<double>(samples_.count);
    progress_.loss_samples += samples_.count;
    progress_.finite = std::isfinite(loss);
    const bool due = config_.log_every > 0 && progress_.step % config_.log_every == 0;
    if (!due || progress_.step <= progress_.step_reported) return {};
    progress_.step_reported = progress_.step;
    const NamedValue values[] = {{"train_loss_step", static_cast<double>(loss)}, {"lr_step", lr}};
    recorder_->line(metric_line(values, progress_.step));
    return {};
}

/// False: interrupted, and a checkpoint is on its way.
Result<bool> Trainer::validate(Evaluation& sums) {
    Batch batch;
    while (true) {
        TUNE_TRY(more, val_data_->next(batch));
        if (!more) return true;
        TUNE_TRY_VOID(read_samples(record_.inputs, batch, samples_));
        TUNE_TRY_VOID(learner_->evaluate(samples_, sums));
        if (!interrupted()) continue;
        save(false);
        return false;
    }
}

std::vector<NamedValue> Trainer::metrics_of(const std::optional<Evaluation>& evaluation) const {
    std::vector<NamedValue> metrics;
    metrics.push_back(
        {"train_loss", progress_.loss_sum / static_cast<double>(progress_.loss_samples)});
    if (evaluation) {
        const auto count = static_cast<double>(evaluation->count);
        metrics.push_back({"val_loss", evaluation->loss / count});
        if (record_.inputs.is_classification())
            metrics.push_back({"val_accuracy", static_cast<double>(evaluation->correct) / count});
        else
            metrics.push_back({"val_mae", evaluation->absolute_error / count});
    }
    metrics.push_back({"lr", learning_rate_.at(std::max<std::int64_t>(progress_.step - 1, 0))});
    metrics.push_back({"epoch", static_cast<double>(progress_.epoch + 1)});
    return metrics;
}

/// Whether to stop, and keeps the best. `watched`: the metric's value, when there is one.
StopReason Trainer::check_stop(std::optional<double> watched) {
    if (!progress_.finite) return StopReason::kNonFinite;
    if (!watched) return StopReason::kNotStopped;
    if (!std::isfinite(*watched)) return StopReason::kNonFinite;
    const bool best = !progress_.best || (watched_.mode == Mode::kMin ? *watched < *progress_.best
                                                                      : *watched > *progress_.best);
    if (best) {
        progress_.best = watched;
        progress_.best_epoch = progress_.epoch + 1;
    }
    if (!early_stopping_) return StopReason::kNotStopped;
    const StopReason reason = early_stopping_->check(*watched).reason;
    progress_.early_stopping = early_stopping_->state();
    return reason;
}

void Trainer::end_epoch(const std::optional<Evaluation>& evaluation) {
    std::vector<NamedValue> metrics = metrics_of(evaluation);
    std::optional<double> watched;
    for (const NamedValue& metric : metrics)
        if (metric.name == watched_.metric) watched = metric.value;
    progress_.stop_reason = check_stop(watched);
    ++progress_.epoch;
    if (progress_.epoch > progress_.epoch_reported) {
        recorder_->line(metric_line(metrics, progress_.epoch));
        progress_.epoch_reported = progress_.epoch;
    }
    progress_.last_metrics = std::move(metrics);
    progress_.epoch_trained = false;
    progress_.loss_sum = 0.0;
    progress_.loss_samples = 0;
    save(progress_.best_epoch == progress_.epoch);
    if (const auto error = recorder_->take_checkpoint_error())
        std::fprintf(stderr, "warning: %s; training continues without this checkpoint\n",
                     error->text().c_str());
}

void Trainer::save(bool with_best) {
    if (!directory_) return;
    progress_.loader = train_data_->state();
    Recorder::Checkpoint checkpoint{.last = last_checkpoint(config_, record_, *learner_),
                                    .best = {}};
    if (with_best) checkpoint.best = best_checkpoint(record_, *learner_);
    recorder_->checkpoint(std::move(checkpoint));
}

void Trainer::report_start() {
    std::fprintf(stderr, "%s, %s; %s in %s per epoch, %s\n", learner_->python_source().c_str(),
                 counted(learner_->parameter_count(), "parameter").c_str(),
                 counted(train_data_->sample_count(), "sample").c_str(),
                 counted(train_data_->batches_per_epoch(), "step").c_str(),
                 counted(config_.epochs, "epoch").c_str());
    if (progress_.step_reported >= 0) return;
    progress_.step_reported = 0;
    const NamedValue values[] = {{"lr_base", learning_rate_.base},
                                 {"lr_effective", learning_rate_.effective}};
    recorder_->line(metric_line(values, 0));
}

/// Called once, at the end: what is on its way to the disk arrives first.
Outcome Trainer::outcome(bool preempted) {
    recorder_->drain();
    if (const auto error = recorder_->take_checkpoint_error())
        std::fprintf(stderr, "warning: %s\n", error->text().c_str());
    return {.preempted = preempted,
            .stop_reason = progress_.stop_reason,
            .epochs = progress_.epoch,
            .steps = progress_.step,
            .metric = watched_.metric,
            .best = progress_.best,
            .best_epoch = progress_.best_epoch};
}

}  // namespace

Result<Outcome> train(const TrainConfig& config, int metrics_fd, const std::atomic<bool>& stop) {
    TUNE_TRY_VOID(validate(config));
    Trainer trainer(config, metrics_fd, stop);
    TUNE_TRY_VOID(trainer.open());
    return trainer.run();
}

}  // namespace tune::train
