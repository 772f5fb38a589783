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

    bool alive = true;         // processes may exist
    bool output_done = false;  // read to its end
    bool finish_done = false;  // the server has acknowledged the end, or wants none
    bool logs_done = false;
    bool keep_folder = false;  // logs that the server did not take
};

}  // namespace tune::worker
