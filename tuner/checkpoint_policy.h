#pragma once
// Where trials' checkpoints are kept besides the disk of the agent that runs them. The same in
// study files and on the wire; no code here.

#include <cstdint>
#include <string>

namespace tune::tuner {

struct CheckpointPolicy {
    /// "artifacts": of the trial's run; "local": nowhere else; a folder that all agents see, as
    /// file:///path; "auto": artifacts, but local within `tune run`, whose agent has one machine.
    std::string store = "auto";
    std::int64_t every_ms = 300'000;  ///< while a trial runs, if its folder has changed
    int keep = 2;                     ///< the last so many sets
    bool keeps_after_end = false;     ///< once the trial has ended for good

    friend bool operator==(const CheckpointPolicy&, const CheckpointPolicy&) = default;
};

}  // namespace tune::tuner
