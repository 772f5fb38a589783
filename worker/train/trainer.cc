// The loop of epochs and steps. Everything that a stop may interrupt is counted in one progress
// record that goes into the checkpoint with the weights, the optimizer and the loader's position; a
// run that is stopped, killed or preempted and started again therefore takes the same steps with
// the same samples. Signals only set a flag that is looked at between steps. Where several ranks
// train, whatever decides the way of the loop is the same on all of them: sums over the ranks, the
// agreed flag, and what rank 0 read; lines and checkpoints are rank 0's alone.

#include "worker/train/trainer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "base/system/file.h"
#include "base/text/counted.h"
#include "loader/dataset.h"
#include "worker/train/inputs_cache.h"
#include "worker/train/report/event_lines.h"
#include "worker/train/step/batch_probe.h"
#include "worker/train/step/memory_limit.h"
#include "worker/train/trainer_impl.h"

namespace tune::train {

using loader::Batch;
using loader::DatasetOptions;

namespace {

/// Samples of one validation batch, at least: nothing is learnt from them, so larger is cheaper.
constexpr std::int64_t kValBatchMin = 256;

}  // namespace

Result<void> Trainer::open() {
    TUNE_TRY(resumed, open_checkpoints());
    std::optional<Safetensors> parent;
    if (!resumed && !config_.resume_from.empty()) {
        TUNE_TRY(file, open_parent());
        parent = std::move(file);
    }
    TUNE_TRY_VOID(open_record(resumed, parent));
    TUNE_TRY_VOID(collective_.agree(choose_batch_size()));
    TUNE_TRY_VOID(collective_.agree(open_data()));
    TUNE_TRY_VOID(collective_.agree(open_rules()));
    TUNE_TRY(learner, Learner::make(config_, record_.inputs, &collective_, &device_));
    learner_ = std::move(learner);
    TUNE_TRY_VOID(collective_.agree(open_own(resumed, parent)));
    TUNE_TRY_VOID(collective_.agree(open_reports(resumed.has_value())));
    recorder_ = std::make_unique<Recorder>(lines_, directory_ ? &*directory_ : nullptr);
    // From here on the parent's files are not needed.
    if (parent) save(false);
    return {};
}

Result<std::optional<Safetensors>> Trainer::open_checkpoints() {
    if (config_.checkpoint_dir.empty()) return std::optional<Safetensors>();
    TUNE_TRY(found, collective_.from_first([&]() -> Result<std::string> {
        TUNE_TRY(directory, CheckpointDirectory::open(config_.checkpoint_dir));
        directory_.emplace(std::move(directory));
        return usable_checkpoint(*directory_, talks_);
    }));
    if (found.empty()) return std::optional<Safetensors>();
    TUNE_TRY(file, read_on_all_ranks(collective_, found));
    return std::optional<Safetensors>(std::move(file));
}

Result<void> Trainer::choose_batch_size() {
    if (config_.find_batch_size == FindBatchSize::kOff) return {};
    if (progress_.batch_size == 0) {
        TUNE_TRY(found, probe_batch_size(config_, record_.inputs, collective_, device_, talks_));
        progress_.batch_size = found;
    }
    config_.batch_size = progress_.batch_size;
    return {};
}

Result<Safetensors> Trainer::open_parent() const {
    TUNE_TRY(path, collective_.from_first([&]() -> Result<std::string> {
        const std::filesystem::path last =
            std::filesystem::path(config_.resume_from) / "last.safetensors";
        std::error_code ignored;
        if (!std::filesystem::exists(last, ignored))
            return Error{Code::kInvalidParameterValue,
                         "resume-from: there is no checkpoint '" + last.string() + "'"};
        return last.string();
    }));
    return read_on_all_ranks(collective_, path);
}

/// Where training begins, and the numbers by which samples become tensors.
Result<void> Trainer::open_record(const std::optional<Safetensors>& resumed,
                                  const std::optional<Safetensors>& parent) {
    if (resumed || parent) {
        TUNE_TRY(record, resumed ? read_record(config_, *resumed) : read_parent(config_, *parent));
        record_ = std::move(record);
        return {};
    }
    if (collective_.size() == 1) {
        TUNE_TRY(inputs, inputs_of_data(config_));
        record_.inputs = std::move(inputs);
        return {};
    }
    TUNE_TRY(text, collective_.from_first([&]() -> Result<std::string> {
        TUNE_TRY(inputs, inputs_of_data(config_));
        return to_text(inputs.to_json());
    }));
    TUNE_TRY(json, parse_json(text));
    TUNE_TRY(inputs, Inputs::from_json(json));
    record_.inputs = std::move(inputs);
    return {};
}

Result<void> Trainer::open_own(const std::optional<Safetensors>& resumed,
                               const std::optional<Safetensors>& parent) {
    if (resumed) return restore(*resumed);
    if (parent) return continue_from(*parent);
    if (config_.init_from.empty()) return {};
    TUNE_TRY(report, learner_->start_from_file());
    if (talks_) std::fprintf(stderr, "%s\n", report.c_str());
    return {};
}

Result<void> Trainer::open_data() {
    DatasetOptions options = dataset_options(config_, config_.train_split);
    options.columns = record_.inputs.column_names();
    options.batch_size = config_.batch_size;
    options.shuffle = true;
    TUNE_TRY(train_data, open_split(options));
    options.split = config_.val_split;
    options.batch_size = std::max(config_.batch_size, kValBatchMin);
    options.batch_size += collective_.size() - 1;
    options.batch_size -= options.batch_size % collective_.size();
    options.shuffle = false;
    TUNE_TRY(val_data, open_split(options));
    train_data_ = std::move(train_data);
    val_data_ = std::move(val_data);
    // Also after a resume: a checkpoint does not say where the numbers are made.
    const bool on_device =
        config_.convert_on == ConvertOn::kDevice ||
        (config_.convert_on == ConvertOn::kAuto && !device_.torch_device().is_cpu());
    if (on_device)
        keep_stored(train_data_.dataset().columns(), val_data_.dataset().columns(), record_.inputs);
    return {};
}

Result<SharedBatches> Trainer::open_split(DatasetOptions options) const {
    const std::string name = "split '" + options.split + "' of '" + config_.data + "'";
    const std::int64_t ranks = collective_.size();
    if (options.batch_size % ranks != 0)
        return invalid_parameter("batch-size " + std::to_string(options.batch_size) +
                                 " is that of all " + std::to_string(ranks) +
                                 " ranks together, and does not divide among them");
    TUNE_TRY(data, SharedBatches::open(std::move(options), collective_.rank(), ranks));
    const std::int64_t samples = data.dataset().sample_count();
    if (samples == 0) return invalid_parameter(name + " is empty");
    if (samples < ranks)
        return invalid_parameter(name + " has " + counted(samples, "sample") + " for " +
                                 std::to_string(ranks) + " ranks; give at most one rank a sample");
    return data;
}

Result<void> Trainer::open_rules() {
    learning_rate_ = learning_rate(config_, train_data_.dataset().batches_per_epoch());
    TUNE_TRY(chosen, chosen_metrics(config_, record_.inputs));
    metrics_ = std::move(chosen);
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

/// What rank 0 says besides its lines.
Result<void> Trainer::open_reports(bool goes_on) {
    if (!collective_.is_first()) return {};
    if (!config_.profile_request.empty()) profile_request_.emplace(config_.profile_request);
    if (!config_.tensorboard.empty()) {
        TUNE_TRY(sink, with_events(lines_, config_.tensorboard, goes_on));
        lines_ = std::move(sink);
    }
    if (config_.profile.empty()) return {};
    TUNE_TRY(steps, parse_steps(config_.profile));
    trace_.emplace(steps, config_.profile_dir.empty() ? "." : config_.profile_dir, device_);
    return {};
}

Result<void> Trainer::restore(const Safetensors& file) {
    TUNE_TRY_VOID(learner_->load_state(file));
    TUNE_TRY_VOID(train_data_.load_state(progress_.loader));
    if (early_stopping_ && progress_.early_stopping)
        early_stopping_->load_state(*progress_.early_stopping);
    if (progress_.parts > 0) learner_->set_parts(progress_.parts);
    noise_.load_state(progress_.noise);
    keep_best(directory_ ? &*directory_ : nullptr, config_.checkpoint_best, progress_);
    if (talks_)
        std::fprintf(stderr, "resumed from %s: epoch %lld, step %lld\n", directory_->last().c_str(),
                     static_cast<long long>(progress_.epoch),
                     static_cast<long long>(progress_.step));
    return {};
}

/// Steps are counted as if all epochs so far had had today's batch size: the schedule of the rate
/// and the corrections of AdamW go on where they were.
Result<void> Trainer::continue_from(const Safetensors& parent) {
    TUNE_TRY_VOID(learner_->continue_from(parent));
    train_data_.start_epoch(progress_.epoch);
    progress_.step = progress_.epoch * train_data_.dataset().batches_per_epoch();
    if (!talks_) return {};
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
    began_ = LoaderStats::Clock::now();
    stats_.emplace(collective_.is_first() ? config_.stats_every : 0.0, collective_.size(),
                   LoaderStats::Clock::now());
    // Run again after its end: the last metrics are given once more, in case they were lost.
    if (finished() && !progress_.last_metrics.empty())
        line(progress_.last_metrics, progress_.epoch_reported);
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
        if (finished()) break;
        TUNE_TRY(stop, interrupted());
        if (stop) return outcome(true);
    }
    return outcome(false);
}

/// False: interrupted, and a checkpoint is on its way.
Result<bool> Trainer::train_epoch() {
    Batch batch;
    Share share;
    TUNE_TRY_VOID(
        learner_->begin_epoch(progress_.epoch, train_data_.dataset().batches_per_epoch()));
    while (progress_.finite) {
        look_for_profile();
        if (trace_) tell_trace(trace_->after_step(progress_.step));
        TUNE_TRY(more, next_batch(batch, share));
        if (!more) break;
        TUNE_TRY(stop, step(batch, share));
        if (stats_->is_due(LoaderStats::Clock::now())) report_loader();
        if (stop ||
            (config_.checkpoint_every > 0 && progress_.step % config_.checkpoint_every == 0)) {
            TUNE_TRY_VOID(take_losses());
            save(false);
        }
        if (stop) return false;
    }
    TUNE_TRY_VOID(take_losses());
    progress_.epoch_trained = true;
    return true;
}

Result<bool> Trainer::next_batch(Batch& batch, Share& share) {
    const Span span("data wait");
    return train_data_.next(batch, share);
}

void Trainer::report_loader() {
    auto values = stats_->take(train_data_.dataset().stage_stats(), LoaderStats::Clock::now());
    // By this name the agent learns how much the study's next trials need.
    if (const std::int64_t taken = taken_bytes(device_.memory()); taken > 0 && !values.empty())
        values.push_back({"gpu_memory_peak_bytes", static_cast<double>(taken)});
    if (!values.empty()) line(values, progress_.step);
}

/// The next steps, if somebody wants a trace and none is being made.
void Trainer::look_for_profile() {
    if (!profile_request_ || (trace_ && !trace_->is_over())) return;
    if (const auto steps = profile_request_->look(std::chrono::steady_clock::now()))
        trace_.emplace(StepRange{.first = progress_.step + 1, .last = progress_.step + *steps},
                       config_.profile_dir.empty() ? "." : config_.profile_dir, device_);
}

void Trainer::tell_trace(const Result<std::optional<std::filesystem::path>>& written) const {
    if (!talks_) return;
    if (!written) {
        std::fprintf(stderr, "warning: %s\n", written.error().text().c_str());
    } else if (*written) {
        std::fprintf(stderr, "profile: steps are in %s; open it at ui.perfetto.dev\n",
                     (*written)->c_str());
        if (!config_.artifact_dir.empty() && (*written)->string().starts_with(config_.artifact_dir))
            recorder_->line(artifact_line(**written));
    }
}

std::vector<NamedValue> Trainer::metrics_of(const std::optional<Evaluation>& evaluation) const {
    std::vector<NamedValue> metrics;
    metrics.push_back(
        {"train_loss", progress_.loss_sum / static_cast<double>(progress_.loss_samples)});
    if (evaluation) {
        metrics.push_back({"val_loss", evaluation->loss / static_cast<double>(evaluation->count)});
        for (const Metric* metric : metrics_)
            metrics.push_back({std::string("val_") + metric->name, metric->value(*evaluation)});
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
    bool best = !progress_.best || (watched_.mode == Mode::kMin ? *watched < *progress_.best
                                                                : *watched > *progress_.best);
    bool is_looked_at = true;
    EarlyStopping::Decision decision;
    if (early_stopping_) {
        decision = early_stopping_->check(*watched, progress_.epoch);
        progress_.early_stopping = early_stopping_->state();
        // Keras keeps the weights of the last improvement that counted.
        is_looked_at =
            watched_.compat != Compat::kKeras || progress_.epoch >= watched_.start_from_epoch;
        if (watched_.compat == Compat::kKeras && is_looked_at) best = decision.improved;
    }
    if (best) {
        progress_.best = watched;
        progress_.best_epoch = progress_.epoch + 1;
    }
    if (config_.checkpoint_best > 1 && (best || is_looked_at))
        rank_epoch(progress_.best_epochs, {progress_.epoch + 1, *watched}, watched_.mode,
                   static_cast<std::size_t>(config_.checkpoint_best), progress_.best_epoch);
    return decision.reason;
}

void Trainer::end_epoch(const std::optional<Evaluation>& evaluation) {
    std::vector<NamedValue> metrics = metrics_of(evaluation);
    std::optional<double> watched;
    for (const NamedValue& metric : metrics)
        if (metric.name == watched_.metric) watched = metric.value;
    progress_.stop_reason = check_stop(watched);
    ++progress_.epoch;
    if (progress_.epoch > progress_.epoch_reported) {
        line(metrics, progress_.epoch);
        progress_.epoch_reported = progress_.epoch;
    }
    progress_.last_metrics = std::move(metrics);
    progress_.epoch_trained = false;
    progress_.loss_sum = 0.0;
    progress_.loss_samples = 0;
    save(true);
    if (const auto error = recorder_->take_checkpoint_error(); error && talks_)
        std::fprintf(stderr, "warning: %s; training continues without this checkpoint\n",
                     error->text().c_str());
}

void Trainer::save(bool ends_epoch) {
    if (!directory_) return;
    const Span span("checkpoint");
    progress_.loader = train_data_.dataset().state();
    Recorder::Checkpoint checkpoint{.last = last_checkpoint(asked_, record_, *learner_),
                                    .best = {}};
    const bool is_best = ends_epoch && progress_.best_epoch == progress_.epoch;
    if (config_.checkpoint_best == 1 && is_best)
        checkpoint.best = best_checkpoint(record_, *learner_);
    if (is_best) checkpoint.best_epoch = progress_.epoch;
    for (const RankedEpoch& each : progress_.best_epochs) {
        checkpoint.kept.push_back(each.epoch);
        if (ends_epoch && each.epoch == progress_.epoch)
            checkpoint.added.push_back({each.epoch, best_checkpoint(record_, *learner_)});
    }
    recorder_->checkpoint(std::move(checkpoint));
}

void Trainer::line(std::span<const NamedValue> values, std::int64_t step) {
    if (collective_.is_first()) recorder_->line(metric_line(values, step));
}

void Trainer::report_start() {
    if (talks_) say_what_trains();
    if (progress_.step_reported >= 0) return;
    progress_.step_reported = 0;
    const AdamSettings settings = adam_settings(config_);
    if (settings.is_clamped && talks_)
        std::fprintf(
            stderr,
            "warning: lr-scaling adam_sde: the batch is %g times base-batch-size, too much "
            "for the rule; a beta that would be below 0 is 0\n",
            batch_ratio(config_));
    std::vector<NamedValue> values = {{"lr_base", learning_rate_.base},
                                      {"lr_effective", learning_rate_.effective}};
    if (config_.lr_scaling == LrScaling::kAdamSde)
        values.insert(values.end(), {{"beta1_effective", settings.beta1},
                                     {"beta2_effective", settings.beta2},
                                     {"eps_effective", settings.eps}});
    if (progress_.batch_size > 0)
        values.push_back({"batch_size", static_cast<double>(progress_.batch_size)});
    line(values, 0);
}

void Trainer::say_what_trains() const {
    const std::string ranks =
        collective_.size() == 1 ? "" : ", " + std::to_string(collective_.size()) + " ranks";
    std::fprintf(stderr, "%s, %s; %s in %s per epoch, %s%s\n", learner_->python_source().c_str(),
                 counted(learner_->parameter_count(), "parameter").c_str(),
                 counted(train_data_.dataset().sample_count(), "sample").c_str(),
                 counted(train_data_.dataset().batches_per_epoch(), "step").c_str(),
                 counted(config_.epochs, "epoch").c_str(), ranks.c_str());
}

/// Of this process, as far as it is known.
DeviceUse Trainer::device_use() const {
    const std::chrono::duration<double> elapsed = LoaderStats::Clock::now() - began_;
    const auto figures = train_data_.dataset().stage_stats();
    const DeviceMemory memory = device_.memory();
    DeviceUse use;
    use.total_bytes = static_cast<double>(memory.total);
    use.peak_bytes = device_.torch_device().is_cpu() ? proc_bytes("/proc/self/status", "VmHWM:")
                                                     : static_cast<double>(memory.peak);
    if (!(elapsed.count() > 0.0)) return use;
    use.samples_per_s = static_cast<double>(samples_trained_) / elapsed.count();
    use.wait_share = (figures.fetch_wait_s + figures.decode_wait_s) / elapsed.count();
    return use;
}

/// Called once, at the end: what is on its way to the disk arrives first.
Outcome Trainer::outcome(bool preempted) {
    if (trace_) tell_trace(trace_->finish());
    if (stats_->is_on()) report_loader();
    recorder_->drain();
    if (const auto error = recorder_->take_checkpoint_error(); error && talks_)
        std::fprintf(stderr, "warning: %s\n", error->text().c_str());
    const std::filesystem::path best_file = preempted ? std::filesystem::path() : leave_models();
    if (const auto noise = noise_.value(); noise && !preempted && talks_)
        std::fprintf(stderr, "%s\n",
                     noise_advice(*noise, config_.batch_size, device_use()).c_str());
    if (const auto figures = train_data_.dataset().stage_stats();
        figures.samples > 0 && !preempted && talks_)
        std::fprintf(stderr, "%s\n", loader::bottleneck(figures).c_str());
    return {.preempted = preempted,
            .stop_reason = progress_.stop_reason,
            .epochs = progress_.epoch,
            .steps = progress_.step,
            .metric = watched_.metric,
            .best = progress_.best,
            .best_epoch = progress_.best_epoch,
            .best_file = best_file};
}

Result<Outcome> train_beside_others(const TrainConfig& config, Device& device, LineSink lines,
                                    const std::atomic<bool>& stop) {
    TUNE_TRY_VOID(validate(config));
    if (config.find_batch_size != FindBatchSize::kOff)
        return invalid_parameter("find-batch-size starts processes, which a pool of trials cannot");
    const std::unique_ptr<Collective> collective = alone();
    Trainer trainer(config, *collective, device, std::move(lines), stop);
    trainer.be_quiet();
    TUNE_TRY_VOID(trainer.open());
    return trainer.run();
}

Result<Outcome> train(const TrainConfig& config, int metrics_fd, const std::atomic<bool>& stop) {
    TUNE_TRY_VOID(validate(config));
    TUNE_TRY(ranks, ranks_of_environment());
    TUNE_TRY(device, open_device(config.device, ranks.local_rank));
    limit_to_what_is_given(*device);
    std::unique_ptr<Collective> collective = alone();
    if (ranks.size > 1) {
        CollectiveOptions options;
        options.device = device.get();
        options.timeout = std::chrono::milliseconds(std::llround(config.rank_timeout * 1000.0));
        TUNE_TRY(met, meet(ranks, options));
        collective = std::move(met);
    }
    Trainer trainer(config, *collective, *device, lines_to(metrics_fd), stop);
    TUNE_TRY_VOID(trainer.open());
    TUNE_TRY(outcome, trainer.run());
    TUNE_TRY_VOID(collective->barrier());  // the others may still need what rank 0 keeps
    return outcome;
}

}  // namespace tune::train
