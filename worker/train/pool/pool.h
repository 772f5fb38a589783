#pragma once
// Many small trials in one process: they share LibTorch's start, one context on the GPU and its
// memory. Which trials those are, and what becomes of their lines, is the caller's business.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "worker/train/pool/protocol.h"

namespace tune::train {

/// Trials that wait for a thread. An agent gives a pool what fits on its device and a few more;
/// beyond this submit() waits, and with it whoever writes to the pool.
inline constexpr std::size_t kPoolWaitingMax = 1024;

/// Runs trials on its threads, in the order in which they came. Any thread may call its methods.
class Pool {
public:
    /// Writes one line; called from any thread, several at once.
    using Emit = std::function<void(const std::string& line)>;
    /// Runs one trial on the calling thread; `stop` is set when it is to end early. What it
    /// throws ends the trial, not the pool.
    using Run = std::function<TrialEnd(const TrialRequest& request, const Emit& emit,
                                       const std::atomic<bool>& stop)>;

    Pool(int threads, Run run, Emit emit);
    /// Stops all trials and waits for them.
    ~Pool();
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    /// Errors: kResourceAlreadyExists for an attempt that waits or runs already.
    [[nodiscard]] Result<void> submit(TrialRequest request);
    /// A running trial ends after its step in progress, one that waits at once; nothing happens to
    /// one that is not here (it may just have ended).
    void end(const AttemptId& id, EndReason reason);
    void end_all(EndReason reason);
    /// Waits until every trial has ended; false when one still runs after `limit`.
    [[nodiscard]] bool drain(std::chrono::milliseconds limit);

private:
    struct Trial {
        TrialRequest request;
        std::atomic<bool> stop = false;
        EndReason reason = EndReason::kStop;  ///< once `stop` is set
    };

    void work();
    TrialEnd run_guarded(const Trial& trial);

    const Run run_;
    const Emit emit_;

    std::mutex mutex_;
    std::condition_variable given_;
    std::condition_variable taken_;  ///< a trial left the queue, or ended
    std::deque<std::shared_ptr<Trial>> waiting_;
    std::map<AttemptId, std::shared_ptr<Trial>> trials_;  ///< waiting and running
    bool closed_ = false;
    std::vector<std::jthread> threads_;  // last: start when all else is there
};

}  // namespace tune::train
