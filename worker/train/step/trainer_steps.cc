// One step of training and one validation. Where several ranks train, they tell each other how it
// stands while the next step is computed: nobody waits for a word but where a line or a checkpoint
// needs the losses, and all act on it after the same step.

#include <array>
#include <cmath>
#include <cstdio>
#include <span>
#include <utility>
#include <vector>

#include "loader/dataset.h"
#include "worker/train/trainer_impl.h"

namespace tune::train {

using loader::Batch;

namespace {

/// Steps that a device may be ahead of us: waiting for each one's loss would leave it idle.
constexpr std::size_t kLossesWaitingMax = 64;

}  // namespace

/// True: a rank was asked to stop.
Result<bool> Trainer::step(const Batch& batch, const Share& share) {
    const Span span("step");
    TUNE_TRY_VOID(read_samples(record_.inputs, batch, samples_));
    samples_.share = share;
    samples_.count = std::max<std::int64_t>(share.rows, 1);  // without repeats
    const double lr = learning_rate_.at(progress_.step);
    TUNE_TRY_VOID(learner_->train_later(samples_, progress_.step, lr));
    ++progress_.step;
    samples_trained_ += share.step_rows;
    waiting_.push_back({share.rows, share.step_rows});
    TUNE_TRY_VOID(look_at_step());
    const bool is_alone = collective_.size() == 1;
    const bool is_at_hand = learner_->losses_are_at_hand();
    if (!is_alone) TUNE_TRY_VOID(tell_ranks(is_at_hand));
    const bool due = config_.log_every > 0 && progress_.step % config_.log_every == 0;
    if (due || (is_alone && is_at_hand) || waiting_.size() >= kLossesWaitingMax) {
        TUNE_TRY(loss, take_losses());
        if (due) report_step(loss, lr);
    }
    return is_alone ? asked_to_stop() : stop_is_agreed_;
}

/// Says how it stands here, and hears how it stood everywhere after the step before: that is here
/// by now, so nobody waits, and all ranks act on it after the same step.
Result<void> Trainer::tell_ranks(bool is_at_hand) {
    TUNE_TRY_VOID(hear_ranks());
    bool is_finite = true;
    if (is_at_hand) {
        TUNE_TRY(losses, learner_->take_losses());
        own_losses_.insert(own_losses_.end(), losses.begin(), losses.end());
        is_finite = waiting_.back().rows == 0 || std::isfinite(own_losses_.back());
    }
    const double own[] = {asked_to_stop() ? 1.0 : 0.0, is_finite ? 0.0 : 1.0};
    TUNE_TRY(told, collective_.start_sum(own));
    told_ = std::move(told);
    return {};
}

Result<void> Trainer::hear_ranks() {
    if (!told_) return {};
    TUNE_TRY(sums, std::exchange(told_, nullptr)->wait());
    stop_is_agreed_ = stop_is_agreed_ || sums[0] > 0.0;
    progress_.finite = progress_.finite && sums[1] == 0.0;
    return {};
}

/// Takes in the losses that a device, or this rank alone, still held; returns the last one, of all
/// ranks. A collective.
Result<double> Trainer::take_losses() {
    TUNE_TRY_VOID(hear_ranks());
    if (waiting_.empty()) return 0.0;
    TUNE_TRY(losses, learner_->take_losses());
    own_losses_.insert(own_losses_.end(), losses.begin(), losses.end());
    // Rows of no weight may have any loss, so they are left out.
    std::vector<double> sums;
    for (std::size_t i = 0; i < waiting_.size(); ++i)
        sums.push_back(
            waiting_[i].rows == 0 ? 0.0 : own_losses_[i] * static_cast<double>(waiting_[i].rows));
    TUNE_TRY_VOID(collective_.sum(sums));
    double loss = 0.0;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
        loss = sums[i] / static_cast<double>(waiting_[i].step_rows);
        progress_.loss_sum += sums[i];
        progress_.loss_samples += waiting_[i].step_rows;
        progress_.finite = progress_.finite && std::isfinite(loss);
    }
    waiting_.clear();
    own_losses_.clear();
    return loss;
}

void Trainer::report_step(double loss, double lr) {
    if (progress_.step <= progress_.step_reported) return;
    progress_.step_reported = progress_.step;
    std::vector<NamedValue> values = {{"train_loss_step", loss}, {"lr_step", lr}};
    if (const auto noise = noise_.value()) values.push_back({"gradient_noise_scale", *noise});
    line(values, progress_.step);
}

/// What a step showed besides its loss.
Result<void> Trainer::look_at_step() {
    if (config_.noise_every > 0) {
        TUNE_TRY(samples, learner_->take_noise());
        for (NoiseSample& sample : samples) {
            double numbers[] = {sample.small_square, sample.big_batch,
                                static_cast<double>(sample.parts)};
            TUNE_TRY_VOID(collective_.sum(numbers));
            noise_.add({.small_square = numbers[0],
                        .big_square = sample.big_square,
                        .big_batch = numbers[1],
                        .parts = std::llround(numbers[2])});
        }
        progress_.noise = noise_.state();
    }
    const std::int64_t parts = learner_->parts();
    if (parts == (progress_.parts > 0 ? progress_.parts : config_.accumulate)) return {};
    progress_.parts = parts;
    const std::string rank =
        collective_.size() == 1 ? "" : "rank " + std::to_string(collective_.rank()) + " is ";
    if (talks_ || collective_.size() > 1)
        std::fprintf(stderr,
                     "warning: %sout of memory; from step %lld on its batch is computed in %lld "
                     "parts, with the same result\n",
                     rank.c_str(), static_cast<long long>(progress_.step),
                     static_cast<long long>(parts));
    const NamedValue values[] = {{"accumulate", static_cast<double>(parts)}};
    line(values, progress_.step);
    return {};
}

/// Whether any rank was asked to stop when this was called the time before; `told` is what is on
/// its way. Alone: at once.
Result<bool> Trainer::interrupted_by(std::unique_ptr<PendingSum>& told) {
    if (collective_.size() == 1) return asked_to_stop();
    bool stop = false;
    if (told) {
        TUNE_TRY(sums, std::exchange(told, nullptr)->wait());
        stop = sums[0] > 0.0;
    }
    const double own = asked_to_stop() ? 1.0 : 0.0;
    TUNE_TRY(started, collective_.start_sum({&own, 1}));
    told = std::move(started);
    return stop;
}

/// False: interrupted, and a checkpoint is on its way.
Result<bool> Trainer::validate(Evaluation& sums) {
    // What rank 0 keeps in checkpoints is what all measure with.
    if (collective_.size() > 1) TUNE_TRY_VOID(learner_->share_buffers(collective_));
    Batch batch;
    Share share;
    std::unique_ptr<PendingSum> told;
    while (true) {
        TUNE_TRY(more, val_data_.next(batch, share));
        if (!more) break;
        TUNE_TRY_VOID(read_samples(record_.inputs, batch, samples_));
        samples_.count = share.rows;
        if (share.rows > 0) TUNE_TRY_VOID(learner_->evaluate(samples_, sums));
        TUNE_TRY(stop, interrupted_by(told));
        if (!stop) continue;
        if (told) TUNE_TRY_VOID(told->wait());
        save(false);
        return false;
    }
    if (told) TUNE_TRY_VOID(told->wait());
    std::array<double, Evaluation::kSums> all = sums.numbers();
    TUNE_TRY_VOID(collective_.sum(all));
    sums = Evaluation::from_numbers(all);
    return true;
}

}  // namespace tune::train
