#pragma once
// A single attempt, one with a process tree of its own, in memory: what is decided before it starts
// and how far its end has come. What parts of the agent know of it beyond (its output, its GPUs,
// what it runs in), they keep themselves under its serial.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "worker/agent/attempts/attempt_files.h"
#include "worker/agent/devices/devices.h"
#include "worker/agent/supervisor/process_tree.h"

namespace tune::worker {

struct Attempt {
    explicit Attempt(AttemptFiles folder) : files(std::move(folder)) {}

    AttemptFiles files;  // empty path: it never got as far as a folder
    AttemptRecord record;
    Assignment assignment;
    int ports = 0;  // of GangPorts; 0: none
    IntentRecord intent;
    std::string search_path;               // the trial's PATH, for messages
    std::filesystem::path checkpoint_dir;  // removed before the end is reported if it is empty

    std::unique_ptr<ProcessTree> processes;  // null: it was refused
    std::optional<ExitRecord> exit;

    bool alive = true;         // processes may exist
    bool finish_done = false;  // the server has acknowledged the end, or wants none
    bool logs_done = false;
    bool keep_folder = false;  // logs that the server did not take

    [[nodiscard]] std::uint64_t serial() const { return record.serial; }
    [[nodiscard]] const tuner::Lease& lease() const { return record.lease; }
    /// Nothing of it is left to be done.
    [[nodiscard]] bool is_settled() const { return !alive && finish_done && logs_done; }
};

}  // namespace tune::worker
