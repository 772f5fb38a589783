#include "worker/agent/output/output_pump.h"

#include <algorithm>
#include <utility>

namespace tune::worker {
namespace {

/// A log without its middle is sent whole each time, so less often: at most this much a
/// millisecond.
constexpr std::int64_t kUploadBytesPerMs = 4'000;

}  // namespace

OutputPump::OutputPump(Loop& loop, Outbox& outbox, LogUpload& upload, int upload_period_ms,
                       PumpEvents events)
    : loop_(loop),
      outbox_(outbox),
      upload_(upload),
      upload_period_ms_(upload_period_ms),
      events_(std::move(events)) {}

void OutputPump::follow(LogJob upload, TrialOutput output) {
    const std::uint64_t serial = upload.serial;
    followed_.insert_or_assign(serial, Followed{std::move(upload), std::move(output)});
}

void OutputPump::pump(std::uint64_t serial) {
    const auto found = followed_.find(serial);
    if (found == followed_.end() || found->second.is_read_to_end) return;
    Followed& followed = found->second;
    const std::int64_t now = loop_.wall_ms();
    for (int i = 0; i < kChunksAtOnce; ++i) {
        if (!outbox_.has_room(serial)) return;  // pump() is called again when it has
        Segment segment;
        const bool more = followed.output.read(now, segment);
        if (!more && followed.is_finished) followed.output.read_unfinished_lines(now, segment);
        events_.found(serial, segment.findings);
        upload_artifacts(followed, std::exchange(segment.findings.artifacts, {}));
        outbox_.add(serial, std::move(segment));
        if (more) continue;
        if (!followed.is_finished) return schedule_upload(followed);
        followed.is_read_to_end = true;
        return events_.read_to_end(serial);  // may forget it
    }
    loop_.post([this, serial] { pump(serial); });  // others get their turn
}

void OutputPump::finish(std::uint64_t serial) {
    const auto found = followed_.find(serial);
    if (found == followed_.end()) return;
    loop_.cancel(found->second.timer);
    found->second.is_finished = true;
    pump(serial);
}

void OutputPump::forget(std::uint64_t serial) {
    const auto found = followed_.find(serial);
    if (found == followed_.end()) return;
    loop_.cancel(found->second.timer);
    followed_.erase(found);
}

void OutputPump::gather() {
    if (gathering_) return;
    gathering_.emplace(outbox_);
    loop_.post([this] { gathering_.reset(); });
}

bool OutputPump::is_read_to_end(std::uint64_t serial) const {
    const auto found = followed_.find(serial);
    return found != followed_.end() && found->second.is_read_to_end;
}

/// After its end all of them go, with the logs.
void OutputPump::upload_artifacts(const Followed& followed, std::vector<std::string> names) {
    if (names.empty() || followed.is_finished) return;
    LogJob job = followed.upload;
    job.artifacts = std::move(names);
    upload_.submit(std::move(job));
}

void OutputPump::schedule_upload(Followed& followed) {
    const std::int64_t bytes = followed.output.bytes();
    if (followed.timer != Loop::kNoTimer || bytes == followed.uploaded_bytes) return;
    std::int64_t delay = kFirstUpload_ms;
    if (followed.uploaded_bytes > 0)
        delay = std::max<std::int64_t>(
            upload_period_ms_, bytes > kCompleteLogBytesMax ? bytes / kUploadBytesPerMs : 0);
    followed.timer = loop_.at(loop_.now_ms() + delay, [this, serial = followed.upload.serial] {
        const auto due = followed_.find(serial);
        if (due == followed_.end() || due->second.is_finished) return;
        due->second.timer = Loop::kNoTimer;
        due->second.uploaded_bytes = due->second.output.bytes();
        upload_.submit(due->second.upload);
    });
}

}  // namespace tune::worker
