#include "worker/train/pool/pool.h"

#include <exception>
#include <new>

namespace tune::train {

Pool::Pool(int threads, Run run, Emit emit) : run_(std::move(run)), emit_(std::move(emit)) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

Pool::~Pool() {
    end_all(EndReason::kStop);
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
    }
    given_.notify_all();
    threads_.clear();
}

Result<void> Pool::submit(TrialRequest request) {
    {
        std::unique_lock lock(mutex_);
        taken_.wait(lock, [this] { return waiting_.size() < kPoolWaitingMax; });
        auto trial = std::make_shared<Trial>();
        if (!trials_.emplace(request.id, trial).second)
            return Error{Code::kResourceAlreadyExists,
                         "attempt " + std::to_string(request.id.attempt) + " of trial '" +
                             request.id.trial + "' is here already"};
        trial->request = std::move(request);
        waiting_.push_back(std::move(trial));
    }
    given_.notify_one();
    return {};
}

void Pool::end(const AttemptId& id, EndReason reason) {
    const std::lock_guard lock(mutex_);
    const auto found = trials_.find(id);
    if (found == trials_.end() || found->second->stop.load()) return;
    found->second->reason = reason;
    found->second->stop.store(true);
}

void Pool::end_all(EndReason reason) {
    const std::lock_guard lock(mutex_);
    for (auto& [id, trial] : trials_) {
        if (trial->stop.load()) continue;
        trial->reason = reason;
        trial->stop.store(true);
    }
}

bool Pool::drain(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    return taken_.wait_for(lock, limit, [this] { return trials_.empty(); });
}

void Pool::work() {
    std::unique_lock lock(mutex_);
    while (true) {
        given_.wait(lock, [this] { return closed_ || !waiting_.empty(); });
        if (waiting_.empty()) return;
        const std::shared_ptr<Trial> trial = std::move(waiting_.front());
        waiting_.pop_front();
        lock.unlock();
        taken_.notify_all();

        TrialEnd end;
        if (trial->stop.load()) {
            end.code = ExitCode::kPreempted;  // before it began
        } else {
            emit_(started_line(trial->request.id));
            end = run_guarded(*trial);
        }
        lock.lock();
        if (end.code == ExitCode::kPreempted && trial->reason == EndReason::kPrune)
            end.code = ExitCode::kPruned;
        lock.unlock();
        emit_(ended_line(trial->request.id, end));

        lock.lock();
        trials_.erase(trial->request.id);
        taken_.notify_all();
    }
}

TrialEnd Pool::run_guarded(const Trial& trial) {
    try {
        return run_(trial.request, emit_, trial.stop);
    } catch (const std::bad_alloc&) {
        return {.code = ExitCode::kOutOfMemory, .message = "out of memory"};
    } catch (const std::exception& error) {
        return {.code = ExitCode::kFailed, .message = error.what()};
    }
}

}  // namespace tune::train
