// Group commit. While one transaction is synced the next group gathers, so an fsync serves all that
// wait, and a lone command never waits for company. A refused command changes nothing and the group
// stays; a failure of SQLite itself rolls back, and each command is then tried in a transaction of
// its own, so that one cannot fail its neighbours. Completions run only after the commit is on
// disk, before the observers hear of it. Changes of the metric columns are announced before the
// commit and ended after it, whether it succeeded or not (metric_columns.h).

#include "tracker/store/writer/commit_thread.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "base/system/late_wakes.h"
#include "base/system/thread.h"
#include "tracker/sqlite/transaction.h"
#include "tracker/store/writer/apply.h"
#include "tracker/store/writer/outbox.h"

namespace tune::tracker {
namespace {

struct ByteCounter {
    template <class Item>
    std::size_t pairs(const std::vector<Item>& items) const {
        std::size_t bytes = 0;
        for (const Item& item : items) bytes += sizeof(Item) + item.key.size() + item.value.size();
        return bytes;
    }
    std::size_t operator()(const LogBatch& command) const {
        return command.metrics.size() * sizeof(Metric) + pairs(command.params) +
               pairs(command.tags);
    }
    std::size_t operator()(const SuggestParams& command) const { return pairs(command.params); }
    std::size_t operator()(const LogInputs& command) const {
        std::size_t bytes = 0;
        for (const DatasetInput& input : command.datasets)
            bytes += sizeof(DatasetInput) + input.dataset.source.size() + pairs(input.tags) +
                     input.dataset.schema.value_or("").size() +
                     input.dataset.profile.value_or("").size();
        return bytes + command.models.size() * sizeof(ModelInput);
    }
    std::size_t operator()(const LogOutputs& command) const {
        return command.models.size() * sizeof(ModelOutput);
    }
    std::size_t operator()(const CreateExperiment& command) const { return pairs(command.tags); }
    std::size_t operator()(const CreateRun& command) const { return pairs(command.tags); }
    std::size_t operator()(const SetTag& command) const { return command.tag.value.size(); }
    std::size_t operator()(const LogParam& command) const { return command.param.value.size(); }
    std::size_t operator()(const SetExperimentTag& command) const {
        return command.tag.value.size();
    }
    std::size_t operator()(const RecordLoggedModel& command) const {
        return command.model_json.size();
    }
    std::size_t operator()(const CreateLoggedModel& command) const {
        return pairs(command.params) + pairs(command.tags);
    }
    std::size_t operator()(const SetLoggedModelTags& command) const { return pairs(command.tags); }
    std::size_t operator()(const LogLoggedModelParams& command) const {
        return pairs(command.params);
    }
    std::size_t operator()(const PutDocument& command) const { return command.json_text.size(); }
    std::size_t operator()(const ImportRows& command) const {
        return std::visit(*this, static_cast<const ImportVariant&>(command));
    }
    std::size_t operator()(const ImportExperiment& command) const {
        return pairs(command.experiment.tags);
    }
    std::size_t operator()(const ImportRun& command) const {
        std::size_t bytes = pairs(command.run.params) + pairs(command.run.tags);
        for (const DatasetInput& input : command.run.dataset_inputs)
            bytes += sizeof(DatasetInput) + input.dataset.source.size() +
                     input.dataset.profile.value_or("").size();
        return bytes;
    }
    std::size_t operator()(const ImportMetrics& command) const {
        std::size_t bytes = 0;
        for (const ImportedSeries& series : command.series)
            bytes += sizeof(series) + series.points.size() * sizeof(Point);
        return bytes;
    }
    std::size_t operator()(const ImportLoggedModel& command) const {
        return pairs(command.model.params) + pairs(command.model.tags) +
               command.model.metrics.size() * sizeof(Metric);
    }
    std::size_t operator()(const Operation& command) const {
        const auto* keyed = std::get_if<KeyedCommand>(&command);
        if (keyed == nullptr) return 0;
        return keyed->key.size() + keyed->fingerprint.size() +
               approximate_bytes(keyed->command.front());
    }
    std::size_t operator()(const ImportRegisteredModel& command) const {
        std::size_t bytes = pairs(command.model.tags);
        for (const ModelVersion& version : command.versions)
            bytes += sizeof(version) + pairs(version.tags);
        return bytes;
    }
    std::size_t operator()(const Atomic& command) const {
        std::size_t bytes = 0;
        for (const Command& one : command.commands) bytes += approximate_bytes(one);
        return bytes;
    }
    std::size_t operator()(const RegistryCommand& command) const {
        return std::visit(*this, static_cast<const RegistryCommandVariant&>(command));
    }
    std::size_t operator()(const CreateRegisteredModel& command) const {
        return pairs(command.tags) + command.description.size();
    }
    std::size_t operator()(const CreateModelVersion& command) const {
        return pairs(command.tags) + command.description.size() + command.source.size() +
               command.run_link.size();
    }
    std::size_t operator()(const UpdateRegisteredModel& command) const {
        return command.description.size();
    }
    std::size_t operator()(const UpdateModelVersion& command) const {
        return command.description.value_or("").size();
    }
    std::size_t operator()(const SetRegisteredModelTag& command) const {
        return command.tag.value.size();
    }
    std::size_t operator()(const SetModelVersionTag& command) const {
        return command.tag.value.size();
    }
    template <class Small>
    std::size_t operator()(const Small&) const {
        return 0;
    }
};

}  // namespace

std::size_t approximate_bytes(const Command& command) {
    return sizeof(Command) + std::visit(ByteCounter{}, static_cast<const CommandVariant&>(command));
}

CommitThread::CommitThread(WriteContext& context, ObserverThread& observers,
                           Checkpointer& checkpointer, ReadPool& readers, std::int64_t position)
    : context_(context),
      observers_(observers),
      checkpointer_(checkpointer),
      readers_(readers),
      position_(position),
      thread_([this] { run(); }) {}

void CommitThread::submit(Command command, Store::Completion completion) {
    const std::size_t bytes = approximate_bytes(command);
    Pending pending{std::move(command), std::move(completion), bytes};
    enqueue({&pending, 1});
}

void CommitThread::submit(std::vector<Submission> submissions) {
    std::vector<Pending> pending;
    pending.reserve(submissions.size());
    for (Submission& submission : submissions) {
        const std::size_t bytes = approximate_bytes(submission.command);
        pending.push_back({std::move(submission.command), std::move(submission.completion), bytes});
    }
    enqueue(pending);
}

void CommitThread::enqueue(std::span<Pending> pending) {
    Error refusal{Code::kTemporarilyUnavailable, "The server is stopping; try again later."};
    std::size_t taken = 0;
    bool was_empty = false;
    {
        const std::lock_guard lock(mutex_);
        was_empty = queue_.empty();
        if (!is_stopping_) taken = append(pending);
        if (!is_stopping_ && taken < pending.size()) {
            refusal = {Code::kRequestLimitExceeded, "Too many writes are waiting (" +
                                                        std::to_string(queue_.size()) +
                                                        "); try again later."};
        }
    }
    // Without the lock: the writer runs at once and wants it.
    if (was_empty && taken > 0) changed_.notify_one();
    for (const Pending& refused : pending.subspan(taken))
        if (refused.completion) refused.completion(refusal);
}

std::size_t CommitThread::append(std::span<Pending> pending) {
    std::size_t taken = 0;
    for (Pending& one : pending) {
        const bool is_full =
            queue_.size() >= kWriteQueueMax || queued_bytes_ + one.bytes > kWriteQueueBytesMax;
        if (is_full && !queue_.empty()) break;
        queued_bytes_ += one.bytes;
        queue_.push_back(std::move(one));
        ++taken;
    }
    rejected_.fetch_add(pending.size() - taken, std::memory_order_relaxed);
    return taken;
}

void CommitThread::describe(StoreStatistics& statistics) {
    statistics.group_commands = group_commands_.counts();
    statistics.commit_seconds = commit_seconds_.counts();
    statistics.commands_rejected = rejected_.load(std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    statistics.commands_waiting = queue_.size();
    statistics.command_bytes_waiting = queued_bytes_;
}

void CommitThread::stop() {
    {
        const std::lock_guard lock(mutex_);
        is_stopping_ = true;
        changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
}

std::vector<CommitThread::Pending> CommitThread::take_group() {
    std::vector<Pending> group;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_stopping_ || !queue_.empty(); });
    std::size_t bytes = 0;
    while (!queue_.empty() && group.size() < kGroupCommitMax && bytes < kGroupBytesMax) {
        bytes += queue_.front().bytes;
        group.push_back(std::move(queue_.front()));
        queue_.pop_front();
    }
    queued_bytes_ -= bytes;
    return group;
}

void CommitThread::run() {
    name_thread("writer");
    take_short_turns();
    for (;;) {
        std::vector<Pending> group = take_group();
        if (group.empty()) return;
        if (group.size() >= kCrowdCommands) readers_.crowd();
        commit_group(group);
        care_for_log();
    }
}

void CommitThread::commit_group(std::span<Pending> group) {
    Result<Outcomes> outcomes = try_group(group);
    if (outcomes) return answer(group, std::move(*outcomes));
    if (group.size() > 1) {
        // One command may be the cause: each gets a transaction of its own.
        for (std::size_t i = 0; i < group.size(); ++i) commit_group(group.subspan(i, 1));
        return;
    }
    Outcomes failed;
    failed.emplace_back(std::move(outcomes).error());
    answer(group, std::move(failed));
}

Result<CommitThread::Outcomes> CommitThread::try_group(std::span<Pending> group) {
    has_outgoing_ = false;
    Result<Outcomes> outcomes = apply_group(group);
    if (!outcomes) {
        if (has_outgoing_) outbox_->forget_documents();
        context_.forget();
        context_.events.clear();
        context_.deferred.clear();
    }
    return outcomes;
}

Result<CommitThread::Outcomes> CommitThread::apply_group(std::span<Pending> group) {
    TUNE_TRY(transaction, sqlite::Transaction::begin_write(context_.connection));
    context_.permissions_changed = false;
    Outcomes outcomes;
    outcomes.reserve(group.size());
    const std::int64_t failures = context_.connection.failure_count();
    for (Pending& pending : group) {
        Result<Outcome> outcome = apply(context_, pending.command);
        // Not refused but failed: SQLite may have rolled the transaction back already.
        if (!outcome && context_.connection.failure_count() != failures)
            return std::move(outcome).error();
        if (!outcome && outcome.error().code == Code::kDataLoss) return std::move(outcome).error();
        outcomes.push_back(std::move(outcome));
    }
    TUNE_TRY_VOID(context_.metrics.flush());
    TUNE_TRY_VOID(put_outgoing());
    TUNE_TRY_VOID(advance_position());
    const std::vector<SeriesKey> touched = context_.metrics.take_touched();
    context_.columns.begin_change(touched);
    const auto begin = std::chrono::steady_clock::now();
    const Result<void> committed = transaction.commit();
    context_.columns.end_change(touched);
    if (!committed) return committed.error();
    if (context_.permissions_changed) permission_epoch_.fetch_add(1);
    permissions_changed_ = context_.permissions_changed;
    commit_seconds_.observe(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    group_commands_.observe(static_cast<double>(group.size()));
    return outcomes;
}

Result<void> CommitThread::put_outgoing() {
    if (outbox_ == nullptr || context_.events.empty()) return {};
    std::vector<Document> documents;
    has_outgoing_ = true;
    outbox_->add_documents(context_.events, documents);
    for (Document& document : documents) {
        Command put = PutDocument{std::move(document.collection), std::move(document.key),
                                  std::move(document.json_text)};
        TUNE_TRY(unused, apply(context_, put));
        static_cast<void>(unused);
    }
    return {};
}

Result<void> CommitThread::advance_position() {
    if (context_.events.empty()) return {};
    TUNE_TRY(update, context_.connection.prepare("UPDATE commit_position SET position = ?"));
    return update.with(position_.load() + 1).run();
}

void CommitThread::answer(std::span<Pending> group, Outcomes outcomes) {
    context_.finish_events();
    const bool has_events = !context_.events.empty();
    const bool permissions_changed = std::exchange(permissions_changed_, false);
    if (has_events) position_.fetch_add(1);
    if (has_events || permissions_changed) observers_.announce();
    {
        const LateWakes until_all_are_answered;
        for (std::size_t i = 0; i < group.size(); ++i)
            if (group[i].completion) group[i].completion(std::move(outcomes[i]));
    }
    if (has_events || permissions_changed)
        observers_.deliver(position_.load(), std::exchange(context_.events, {}),
                           permissions_changed);
    context_.metrics.trim();
}

void CommitThread::care_for_log() {
    const int pages = context_.connection.wal_pages();
    if (pages < log_pages_) checkpointer_.log_restarted();
    log_pages_ = pages;
    if (pages - checkpointer_.copied_pages() >= kCheckpointPages) checkpointer_.request();
    if (pages < kLogPagesWanted || !checkpointer_.take_finished()) return;
    if (pages >= kLogPagesMax) {
        if (readers_.pause(kReadersPause)) restart_log();
        readers_.resume();
    } else if (!readers_.is_in_use()) {
        restart_log();
    }
}

/// Copies what is left, which lets the next transaction write from the log's beginning if nobody
/// reads the log.
void CommitThread::restart_log() {
    if (const Result<sqlite::LogPages> done = context_.connection.checkpoint(); !done)
        log_warning("Checkpoint: " + done.error().text());
}

}  // namespace tune::tracker
