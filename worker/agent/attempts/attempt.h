#pragma once
// One attempt in memory; used by the files of class Attempts only.

#include "worker/agent/attempts/attempts.h"

namespace tune::worker {

struct Attempts::Attempt {
    explicit Attempt(AttemptFiles folder) : files(std::move(folder)) {}

    AttemptFiles files;  // empty path: it never got as far as a folder
    AttemptRecord record;
    Assignment assignment;
    IntentRecord intent;
    std::string search_path;               // the trial's PATH, for messages
    std::filesystem::path checkpoint_dir;  // removed before the end is reported if it is empty

    Process supervisor;
    std::vector<Process> survivors;  // of a supervisor that was killed
    std::optional<ExitRecord> exit;
    std::optional<TrialOutput> output;
    std::optional<SystemMetrics> system;
    Loop::TimerId upload_timer = Loop::kNoTimer;
    Loop::TimerId system_timer = Loop::kNoTimer;
    std::int64_t uploaded_bytes = 0;
    std::int64_t peak_gpu_bytes = 0;  // 0: unknown
    int gpu_look_ms = 0;              // until the next look at it
    Loop::TimerId gpu_memory_timer = Loop::kNoTimer;
    int ports = 0;  // of GangPorts; 0: none

    std::map<std::string, std::int64_t> energy_mj = {};  // of its GPUs when it began
    std::string gpu_fault = {};                          // of one of its GPUs while it had it
    Loop::TimerId gpu_timer = Loop::kNoTimer;
    bool gpus_read = true;  // what its GPUs say after its end is known, or nobody can say it

    bool environment_known = true;  // and handed over, or nobody asks

    bool alive = true;         // processes may exist
    bool output_done = false;  // read to its end
    bool finish_done = false;  // the server has acknowledged the end, or wants none
    bool logs_done = false;
    bool keep_folder = false;  // logs that the server did not take
};

}  // namespace tune::worker
