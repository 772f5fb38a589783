#pragma once
// Follows the output of single attempts: what their lines report goes to the outbox as soon as it
// is announced and the outbox has room for it, files that they name to the run's artifacts at once,
// and the logs themselves a little later. Output is read to its end before an end is judged, so no
// line is lost.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "worker/agent/loop.h"
#include "worker/agent/output/trial_output.h"
#include "worker/agent/server/log_upload.h"
#include "worker/agent/server/outbox.h"

namespace tune::worker {

inline constexpr int kFirstUpload_ms = 1'000;  ///< after the first output, its log is uploaded
inline constexpr int kChunksAtOnce = 16;       ///< read before other events have their turn

struct PumpEvents {
    /// What lines said, before it goes to the outbox.
    std::function<void(std::uint64_t serial, const LineFindings& findings)> found;
    /// Once an attempt, after finish(): its output has been read to the end.
    std::function<void(std::uint64_t serial)> read_to_end;
};

/// Loop thread only. A serial that is not followed is ignored.
class OutputPump {
public:
    /// The parts outlive it. `upload_period_ms`: between two uploads of a log that grows.
    OutputPump(Loop& loop, Outbox& outbox, LogUpload& upload, int upload_period_ms,
               PumpEvents events);

    /// From now on; nothing is read yet. The outbox knows the attempt. `upload`: of its logs while
    /// it runs.
    void follow(LogJob upload, TrialOutput output);
    /// There may be more to read, or room for it.
    void pump(std::uint64_t serial);
    /// Its processes are gone: the output that is there is all.
    void finish(std::uint64_t serial);
    void forget(std::uint64_t serial);

    /// What is read in this turn of the loop goes in one report.
    void gather();

    /// REQUIRES: it is followed.
    [[nodiscard]] const TrialOutput& output(std::uint64_t serial) const {
        return followed_.at(serial).output;
    }
    [[nodiscard]] bool is_read_to_end(std::uint64_t serial) const;

private:
    struct Followed {
        LogJob upload;
        TrialOutput output;
        Loop::TimerId timer = Loop::kNoTimer;  // of the next upload
        std::int64_t uploaded_bytes = 0;
        bool is_finished = false;  // there will be no more output
        bool is_read_to_end = false;
    };

    void schedule_upload(Followed& followed);
    void upload_artifacts(const Followed& followed, std::vector<std::string> names);

    Loop& loop_;
    Outbox& outbox_;
    LogUpload& upload_;
    const int upload_period_ms_;
    const PumpEvents events_;
    std::map<std::uint64_t, Followed> followed_;
    std::optional<Outbox::Gathering> gathering_;  // until the end of this turn
};

}  // namespace tune::worker
