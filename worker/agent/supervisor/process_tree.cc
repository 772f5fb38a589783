#include "worker/agent/supervisor/process_tree.h"

#include <signal.h>

#include <utility>

namespace tune::worker {

ProcessTree::ProcessTree(Loop& loop, AttemptFiles files, ProcessTreeEvents events)
    : loop_(loop), files_(std::move(files)), events_(std::move(events)) {}

ProcessTree::~ProcessTree() {
    if (supervisor_.pidfd) loop_.unwatch(supervisor_.pidfd.get());
    unwatch_survivors();
}

Result<void> ProcessTree::watch(Process supervisor) {
    supervisor_ = std::move(supervisor);
    return loop_.watch(supervisor_.pidfd.get(), [this] { on_supervisor_ended(); });
}

void ProcessTree::on_supervisor_ended() {
    events_.supervisor_ended();
    loop_.unwatch(supervisor_.pidfd.get());
    reap_process(supervisor_);
    supervisor_.pidfd.reset();
    if (std::optional<ExitRecord> exit = files_.read_exit()) return announce(std::move(exit));
    sweep();
}

void ProcessTree::sweep() {
    unwatch_survivors();
    survivors_ = events_.find_survivors();
    bool is_watching = false;
    for (const Process& process : survivors_) {
        signal_process(process, SIGKILL);
        if (loop_.watch(process.pidfd.get(), [this] { sweep(); })) is_watching = true;
    }
    if (is_watching) return;
    survivors_.clear();
    announce(std::nullopt);
}

void ProcessTree::unwatch_survivors() {
    for (const Process& process : survivors_) loop_.unwatch(process.pidfd.get());
}

/// The events are copied: the tree may go meanwhile.
void ProcessTree::announce(std::optional<ExitRecord> exit) {
    const auto gone = events_.gone;
    gone(std::move(exit));
}

}  // namespace tune::worker
