#pragma once
// The processes of a trial or a pool, seen from the agent: a supervisor and whatever descends from
// it. It is gone when none of them is left; while the supervisor lives it answers for that, and of
// one that was killed the survivors are searched and killed first.

#include <functional>
#include <optional>
#include <vector>

#include "worker/agent/attempts/attempt_files.h"
#include "worker/agent/loop.h"
#include "worker/agent/supervisor/launcher.h"

namespace tune::worker {

/// Called on the loop. `gone` may destroy the tree.
struct ProcessTreeEvents {
    /// What a killed supervisor left.
    std::function<std::vector<Process>()> find_survivors;
    /// The supervisor has ended; others may be left.
    std::function<void()> supervisor_ended;
    /// No process is left, once a tree. Without a record the supervisor was killed.
    std::function<void(std::optional<ExitRecord> exit)> gone;
};

/// Loop thread only.
class ProcessTree {
public:
    /// `files`: of the supervisor. The loop outlives it.
    ProcessTree(Loop& loop, AttemptFiles files, ProcessTreeEvents events);
    ~ProcessTree();
    ProcessTree(const ProcessTree&) = delete;
    ProcessTree& operator=(const ProcessTree&) = delete;

    /// Its supervisor, which runs. Errors: kResourceExhausted; then its end goes unseen.
    [[nodiscard]] Result<void> watch(Process supervisor);
    /// Nobody watches a supervisor of it any more, and it left no record: kills what is left.
    /// `gone` is called now or later.
    void sweep();
    /// To the supervisor, if it lives: SIGTERM to end the trial, SIGQUIT to kill it.
    void signal(int signal) const { signal_process(supervisor_, signal); }
    /// Of the supervisor; -1: there has been none.
    [[nodiscard]] int pid() const { return supervisor_.pid; }

private:
    void on_supervisor_ended();
    void unwatch_survivors();
    void announce(std::optional<ExitRecord> exit);

    Loop& loop_;
    const AttemptFiles files_;
    const ProcessTreeEvents events_;
    Process supervisor_;
    std::vector<Process> survivors_;
};

}  // namespace tune::worker
