#pragma once
// What the parts of Studies tell each other without knowing each other.

#include <cstdint>
#include <string>

#include "tuner/protocol.h"
#include "tuner/study/registry/bookkeeping/locked_batch.h"
#include "tuner/study/study.h"

namespace tune::tuner {

/// All under the lock.
class StudyEvents {
public:
    /// The trial was changed: what is known beside it (its credential, who holds it) follows.
    virtual void follow(Study& study, Trial& trial) = 0;
    /// The study was changed: a stopped study's queue is cancelled, a used budget completes the
    /// study, free places are handed out.
    virtual void after_change(LockedBatch& locked, Study& study) = 0;
    /// A change is on disk, or an intermediate value has come: tells the listener and whoever
    /// waits. `trial`: nullptr for the study itself.
    virtual void notify(LockedBatch& locked, Study& study, const Trial* trial) = 0;
    /// The study's document is on disk.
    virtual void study_written(LockedBatch& locked, Study& study) = 0;
    /// Whoever holds the running attempt is to end it. One without a connection learns of it at its
    /// next report; when the study is over its attempt is cancelled at once.
    virtual void direct(LockedBatch& locked, Study& study, Trial& trial, Action action,
                        std::string reason) = 0;
    /// Something has changed for trials that the agent holds.
    virtual void wake_heartbeat(LockedBatch& locked, const std::string& agent_id) = 0;
    /// Agents that wait may get something now.
    virtual void wake_leases(LockedBatch& locked) = 0;
    /// From now on the trial's lease ends when it is not renewed.
    virtual void begin_lease(const Trial& trial) = 0;
    /// Says of the study what keeps agents from running it.
    virtual void note_obstacle(Study& study) = 0;
    /// Whether a running trial is in the hands of somebody who is there.
    [[nodiscard]] virtual bool is_held(const Study& study) const = 0;
    /// Something is due at this time (monotonic).
    virtual void wake_ticker(std::int64_t deadline_ms) = 0;
    /// The same for what a trial that has just started brings: its lease's end, its study's.
    virtual void wake_ticker_for(const Study& study, const Trial& trial) = 0;

protected:
    ~StudyEvents() = default;
};

/// What a server does at present. Guarded by the lock of studies.
struct Phase {
    bool serves = false;    ///< others may reach it; else it is only looked at
    bool draining = false;  ///< nothing begins any more
    bool stopping = false;
};

}  // namespace tune::tuner
