#include "tuner/study/registry/bookkeeping/locked_batch.h"

#include <memory>
#include <thread>

namespace tune::tuner {

LockedBatch::~LockedBatch() {
    if (!writes_.empty()) submit();
    held_.unlock();
    for (const std::function<void()>& call : after_) call();
}

void LockedBatch::write(std::vector<tracker::Command> commands, Written written) {
    writes_.push_back({std::move(commands), std::move(written)});
}

/// In one go, so that they share a commit: what is answered after the last of them would wait for
/// the syncs of the others. Under the lock, so that the store takes turns in their order. It may
/// complete at once, on this thread, when its queue is full; such answers wait for the end.
void LockedBatch::submit() {
    struct Submission {
        std::thread::id thread = std::this_thread::get_id();
        bool is_over = false;  // of that thread only
    };
    auto submission = std::make_shared<Submission>();
    std::vector<tracker::Submission> all;
    all.reserve(writes_.size());
    for (Write& write : writes_) {
        auto written = std::make_shared<Written>(std::move(write.written));
        auto complete = [this, &lock = lock_, submission, hold = lock_.retired_.hold(),
                         written](const Result<tracker::Outcome>& outcome) {
            Result<void> result = outcome ? Result<void>() : Result<void>(outcome.error());
            auto tell = [&lock, hold, written, result = std::move(result)] {
                LockedBatch later(lock);
                if (*written) (*written)(later, result);
            };
            const bool is_early =
                submission->thread == std::this_thread::get_id() && !submission->is_over;
            if (is_early) return after(std::move(tell));
            lock.post(std::move(tell));
        };
        all.push_back({tracker::Atomic{std::move(write.commands)}, std::move(complete)});
    }
    lock_.store_.submit(std::move(all));
    submission->is_over = true;
}

}  // namespace tune::tuner
