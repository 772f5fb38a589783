#pragma once
// The class behind train(), for trainer.cc, step/trainer_steps.cc and leave_models.cc.

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "worker/train/checkpoint/checkpoint.h"
#include "worker/train/collective/collective.h"
#include "worker/train/collective/shared_batches.h"
#include "worker/train/device/device.h"
#include "worker/train/inputs.h"
#include "worker/train/learner.h"
#include "worker/train/recorder.h"
#include "worker/train/report/loader_stats.h"
#include "worker/train/step/profile_request.h"
#include "worker/train/step/step_trace.h"
#include "worker/train/trainer.h"

namespace tune::train {

class Trainer {
public:
    Trainer(TrainConfig config, Collective& collective, Device& device, LineSink lines,
            const std::atomic<bool>& stop)
        : asked_(config),
          config_(std::move(config)),
          collective_(collective),
          device_(device),
          lines_(std::move(lines)),
          stop_(stop) {}

    /// Nothing on stderr.
    void be_quiet() { talks_ = false; }
    /// Everything that can be wrong before the first step.
    Result<void> open();
    Result<Outcome> run();

private:
    Result<std::optional<Safetensors>> open_checkpoints();
    [[nodiscard]] Result<Safetensors> open_parent() const;
    Result<void> open_record(const std::optional<Safetensors>& resumed,
                             const std::optional<Safetensors>& parent);
    Result<void> open_own(const std::optional<Safetensors>& resumed,
                          const std::optional<Safetensors>& parent);
    Result<void> choose_batch_size();
    Result<void> open_data();
    Result<SharedBatches> open_split(loader::DatasetOptions options) const;
    Result<void> open_rules();
    Result<void> open_reports(bool goes_on);
    Result<void> restore(const Safetensors& file);
    Result<void> continue_from(const Safetensors& parent);

    [[nodiscard]] std::int64_t last_epoch() const;
    [[nodiscard]] bool finished() const;
    /// Whether this rank was asked to stop.
    [[nodiscard]] bool asked_to_stop() const { return stop_.load() || recorder_->reader_gone(); }
    /// Whether any was. A collective.
    Result<bool> interrupted() { return collective_.any(asked_to_stop()); }
    [[nodiscard]] bool validation_is_due() const;
    Result<bool> train_epoch();
    Result<bool> next_batch(loader::Batch& batch, Share& share);
    Result<bool> step(const loader::Batch& batch, const Share& share);
    Result<void> tell_ranks(bool is_at_hand);
    Result<void> hear_ranks();
    Result<bool> interrupted_by(std::unique_ptr<PendingSum>& told);
    Result<double> take_losses();
    [[nodiscard]] DeviceUse device_use() const;
    void report_loader();
    void look_for_profile();
    void tell_trace(const Result<std::optional<std::filesystem::path>>& written) const;
    void report_step(double loss, double lr);
    Result<void> look_at_step();
    Result<bool> validate(Evaluation& sums);
    void end_epoch(const std::optional<Evaluation>& evaluation);
    [[nodiscard]] std::vector<NamedValue> metrics_of(
        const std::optional<Evaluation>& evaluation) const;
    [[nodiscard]] StopReason check_stop(std::optional<double> watched);
    void save(bool ends_epoch);
    [[nodiscard]] std::filesystem::path leave_models();
    Result<std::string> leave_mlflow_model(const std::optional<KeptWeights>& best);
    void line(std::span<const NamedValue> values, std::int64_t step);
    void report_start();
    void say_what_trains() const;
    [[nodiscard]] Outcome outcome(bool preempted);

    const TrainConfig asked_;  ///< what checkpoints record
    TrainConfig config_;       ///< with the batch size that was found
    Collective& collective_;
    Device& device_;
    LineSink lines_;
    bool talks_ = collective_.is_first();  ///< on stderr
    const std::atomic<bool>& stop_;

    std::optional<CheckpointDirectory> directory_;
    Record record_;
    Progress& progress_ = record_.progress;
    SharedBatches train_data_;
    SharedBatches val_data_;
    std::unique_ptr<Learner> learner_;
    std::vector<const Metric*> metrics_;
    LearningRate learning_rate_;
    EarlyStoppingRule watched_;  ///< the metric whose best is kept, early stopping or not
    std::optional<EarlyStopping> early_stopping_;
    NoiseScale noise_;
    Samples samples_;
    /// Rows of this rank and of all, of a step whose loss is not in `progress_` yet.
    struct WaitingStep {
        std::int64_t rows = 0;
        std::int64_t step_rows = 0;
    };
    std::vector<WaitingStep> waiting_;
    std::vector<double> own_losses_;    ///< the first of those that no device holds any more
    std::unique_ptr<PendingSum> told_;  ///< whether a rank was asked to stop, after the last step
    bool stop_is_agreed_ = false;
    std::int64_t samples_trained_ = 0;  ///< by this process, of all ranks
    LoaderStats::Clock::time_point began_;
    std::unique_ptr<Recorder> recorder_;
    std::optional<LoaderStats> stats_;
    std::optional<StepTrace> trace_;
    std::optional<ProfileRequest> profile_request_;  // of rank 0
};

}  // namespace tune::train
