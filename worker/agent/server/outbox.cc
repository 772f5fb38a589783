// Per attempt a queue of segments and at most one finish; a thread takes what all attempts have to
// send that no other thread serves, so each attempt's calls are in order, and sends it as one
// report. An end goes with it when nothing else of its attempt waits; what the server does not take
// that way goes by the route of its own, whose errors say more. What is
// in flight is noted on disk before it is sent and the note is advanced after the answer: a
// successor repeats the very same metrics, and the server keeps one of equal ones. Errors that pass
// (on the way, of the server's disk, of a full queue) are retried with backoff, whether the whole
// answer or one attempt's part of it says so: what is refused that way stays at the front of its
// queue until it is taken or the attempt is another's. Final refusals settle the item.

#include "worker/agent/server/outbox.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "base/text/counted.h"
#include "base/text/percent.h"

namespace tune::worker {
namespace {

constexpr int kDeliveryTimeout_ms = 30'000;
constexpr int kUnknownTries = 3;
constexpr int kRegisterPause_ms = 200;
/// Metrics and params of one request. A metric is about 90 bytes of JSON: far below the server's
/// limit of a body.
constexpr std::size_t kReportValuesMax = 5'000;
/// Params may be long: this many segments of at most 128 kB stay below the limit, too.
constexpr std::size_t kReportSegmentsMax = 64;
/// An attempt's end is some 300 bytes.
constexpr std::size_t kReportPartsMax = 512;
/// What a short trial ran in goes with its metrics or its end, and its last metrics go with its
/// end: one request and one write instead of two.
constexpr int kTagsWait_ms = 3'000;
constexpr int kMetricsWait_ms = 5;

std::size_t values_of(const Segment& segment) {
    const LineFindings& found = segment.findings;
    return found.metrics.size() + found.params.size() + found.tags.size();
}

/// A quota or disk that is full is waited for here: metrics and ends are not to be lost.
bool may_pass(const Error& error) {
    return is_passing(error) || error.code == Code::kResourceExhausted;
}

}  // namespace

Outbox::Outbox(std::string agent_id, OutboxEvents events)
    : agent_path_("/api/2.0/tune/agents/" + percent_encode(agent_id, false)),
      events_(std::move(events)) {}

Result<std::unique_ptr<Outbox>> Outbox::create(const std::string& server_url, std::string agent_id,
                                               int threads, OutboxEvents events) {
    std::unique_ptr<Outbox> outbox(new Outbox(std::move(agent_id), std::move(events)));
    TUNE_TRY_VOID(outbox->connect(server_url, threads));
    return outbox;
}

Outbox::~Outbox() {
    stop();
}

void Outbox::open(std::uint64_t serial, const AttemptFiles& files, tuner::AttemptId id,
                  ProgressRecord progress) {
    const std::lock_guard lock(mutex_);
    Entry entry{.files = files, .id = std::move(id)};
    entry.acknowledged = std::move(progress.acknowledged);
    entries_.insert_or_assign(serial, std::move(entry));
}

Outbox::Gathering::Gathering(Outbox& outbox) : outbox_(outbox) {
    const std::lock_guard lock(outbox_.mutex_);
    ++outbox_.gathering_;
}

Outbox::Gathering::~Gathering() {
    const std::lock_guard lock(outbox_.mutex_);
    --outbox_.gathering_;
    outbox_.notify();
}

void Outbox::notify() {
    if (gathering_ == 0) changed_.notify_one();
}

void Outbox::add(std::uint64_t serial, Segment segment, bool resent) {
    add(serial, std::move(segment), resent, resent ? 0 : kMetricsWait_ms);
}

void Outbox::add(std::uint64_t serial, Segment segment, bool resent, int wait_ms) {
    if (values_of(segment) == 0) return;
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(serial);
    if (found == entries_.end()) return;
    Entry& entry = found->second;
    const Time due = std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_ms);
    if (entry.waiting.empty() && !entry.is_kept) {
        entry.waits_for_more = true;
        entry.not_before = due;
    } else if (entry.waits_for_more) {
        entry.not_before = std::min(entry.not_before, due);
    }
    entry.waiting_values += values_of(segment);
    if (resent) ++entry.resent;
    entry.waiting.push_back(std::move(segment));
    notify();
}

void Outbox::add_metrics(std::uint64_t serial, std::vector<tuner::ReportedMetric> metrics) {
    Segment segment;
    segment.findings.metrics = std::move(metrics);
    segment.end.offset = {-1, -1};
    add(serial, std::move(segment));
}

void Outbox::add_tags(std::uint64_t serial, std::vector<tuner::ReportedTag> tags) {
    Segment segment;
    segment.findings.tags = std::move(tags);
    segment.end.offset = {-1, -1};
    add(serial, std::move(segment), false, kTagsWait_ms);
}

bool Outbox::has_room(std::uint64_t serial) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(serial);
    if (found == entries_.end()) return true;
    found->second.was_full = found->second.waiting_values >= kWaitingMax;
    return !found->second.was_full;
}

void Outbox::finish(std::uint64_t serial, tuner::FinishRequest request) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(serial);
    if (found == entries_.end()) return;
    found->second.finish = std::move(request);
    if (std::exchange(found->second.waits_for_more, false)) found->second.not_before = {};
    notify();
}

void Outbox::drop(std::uint64_t serial) {
    const std::lock_guard lock(mutex_);
    entries_.erase(serial);
}

Outbox::Part Outbox::collect(std::uint64_t serial, Entry& entry, std::size_t values_max) {
    Part part{serial, 0,  0,          entry.id, {entry.id.run_id, entry.id.attempt, {}, {}, {}},
              false,  {}, entry.files};
    ProgressRecord progress{entry.acknowledged, {}};
    // What an earlier agent sent goes alone, as it went then.
    const std::size_t segments_max =
        std::min(kReportSegmentsMax, entry.resent > 0 ? entry.resent : entry.waiting.size());
    for (const Segment& segment : entry.waiting) {
        const LineFindings& found = segment.findings;
        const bool fits = part.values + values_of(segment) <= values_max;
        if (part.segments == segments_max || (part.segments > 0 && !fits)) break;
        part.report.metrics.insert(part.report.metrics.end(), found.metrics.begin(),
                                   found.metrics.end());
        part.report.params.insert(part.report.params.end(), found.params.begin(),
                                  found.params.end());
        part.report.tags.insert(part.report.tags.end(), found.tags.begin(), found.tags.end());
        part.values += values_of(segment);
        ++part.segments;
        if (segment.end.offset[0] >= 0)
            progress.sent.push_back({segment.end.offset, segment.timestamp_ms});
    }
    if (part.segments == entry.waiting.size() && !entry.ends_alone)
        part.report.finish = entry.finish;
    part.has_end = part.report.finish.has_value();
    entry.waits_for_more = false;
    if (entry.resent == 0 && !progress.sent.empty()) part.progress = std::move(progress);
    entry.busy = true;
    return part;
}

std::vector<Outbox::Part> Outbox::collect_reports() {
    std::vector<Part> parts;
    std::size_t values = 0;
    std::size_t segments = 0;
    const Time now = std::chrono::steady_clock::now();
    for (auto& [serial, entry] : entries_) {
        const bool is_due = !entry.waiting.empty() || (entry.finish && !entry.ends_alone);
        if (entry.busy || !is_due || entry.not_before > now) continue;
        if (values >= kReportValuesMax || segments >= kReportSegmentsMax ||
            parts.size() >= kReportPartsMax)
            break;
        parts.push_back(collect(serial, entry, kReportValuesMax - values));
        values += parts.back().values;
        segments += parts.back().segments;
    }
    return parts;
}

std::optional<std::uint64_t> Outbox::find_finish() const {
    for (const auto& [serial, entry] : entries_)
        if (!entry.busy && entry.waiting.empty() && entry.finish && entry.ends_alone) return serial;
    return std::nullopt;
}

std::optional<Outbox::Time> Outbox::next_retry() const {
    std::optional<Time> next;
    for (const auto& [serial, entry] : entries_)
        if (!entry.busy && (!entry.waiting.empty() || entry.finish) &&
            (!next || entry.not_before < *next))
            next = entry.not_before;
    return next;
}

void Outbox::work(tracker::Client& client) {
    while (true) {
        std::vector<Part> parts;
        std::optional<std::uint64_t> finish;
        {
            std::unique_lock lock(mutex_);
            while (!stopping_) {
                if (gathering_ > 0) {
                    changed_.wait(lock);
                    continue;
                }
                parts = collect_reports();
                if (parts.empty()) finish = find_finish();
                if (!parts.empty() || finish) break;
                if (const std::optional<Time> retry = next_retry())
                    changed_.wait_until(lock, *retry);
                else
                    changed_.wait(lock);
            }
            if (stopping_) return;
            if (finish) entries_.at(*finish).busy = true;
        }
        if (finish)
            send_finish(client, *finish);
        else
            send_reports(client, std::move(parts));
    }
}

std::optional<Result<Json>> Outbox::insist(tracker::Client& client, const std::string& path,
                                           const Json& body) {
    Backoff backoff;
    while (true) {
        Result<Json> answer = client.post(path, body, kDeliveryTimeout_ms);
        if (answer) {
            events_.contact("");
            return answer;
        }
        if (answer.error().code == Code::kCancelled) return std::nullopt;
        if (!may_pass(answer.error())) return answer;
        events_.contact(answer.error().text());
        if (!pause(backoff.next_ms())) return std::nullopt;
    }
}

void Outbox::send_reports(tracker::Client& client, std::vector<Part> parts) {
    tuner::ReportRequest request;
    for (Part& part : parts) {
        // First the note of what is sent and under which time, then the sending: an agent that
        // takes over after a kill in between sends the very same metrics again, and the server
        // keeps one of equal ones.
        if (part.progress) {
            const Result<void> noted = part.files.write_progress(*part.progress);
            if (!noted) log_warning(noted.error().text());
        }
        request.reports.push_back(std::move(part.report));
    }
    const std::optional<Result<Json>> answer =
        insist(client, agent_path_ + "/report", tuner::to_json(request));
    if (!answer) return;
    std::vector<tuner::ReportResult> results(parts.size());
    if (*answer) {
        Result<tuner::ReportReply> reply = tuner::from_json<tuner::ReportReply>(**answer);
        if (reply && reply->results.size() == parts.size()) results = std::move(reply->results);
    } else if (answer->error().code == Code::kResourceDoesNotExist) {
        events_.unknown_agent();
        pause(Backoff().next_ms());
        const std::lock_guard lock(mutex_);
        for (const Part& part : parts) {
            const auto entry = entries_.find(part.serial);
            if (entry != entries_.end()) entry->second.busy = false;  // again, when registered
        }
        changed_.notify_all();
        return;
    } else {
        for (tuner::ReportResult& result : results) {
            result.ok = false;
            result.error_code = code_name(answer->error().code);
            result.message = answer->error().text();
        }
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (!results[i].ok && may_pass({code_from_name(results[i].error_code), {}}))
            keep(parts[i], results[i].message);
        else
            settle(parts[i], results[i]);
    }
}

/// The part stays in the queue and goes again, with what has come since, after a pause.
void Outbox::keep(const Part& part, const std::string& why) {
    bool is_first = false;
    {
        const std::lock_guard lock(mutex_);
        const auto found = entries_.find(part.serial);
        if (found == entries_.end()) return;
        Entry& entry = found->second;
        is_first = !std::exchange(entry.is_kept, true);
        entry.not_before =
            std::chrono::steady_clock::now() + std::chrono::milliseconds(entry.backoff.next_ms());
        entry.busy = false;
        changed_.notify_all();
    }
    if (is_first)
        part.files.note("the server cannot take metrics now; they are kept and sent again: " + why);
}

void Outbox::settle(const Part& part, const tuner::ReportResult& result) {
    const bool stale = !result.ok && result.error_code == code_name(Code::kResourceConflict);
    if (!result.ok && !stale && part.values > 0) {
        const std::string values = counted(static_cast<std::int64_t>(part.values), "value");
        log_warning("the server refused " + values + " of attempt " +
                    std::to_string(part.id.attempt) + " of run " + part.id.run_id + ": " +
                    result.message);
        part.files.note("the server refused " + values + ": " + result.message);
    }
    bool room = false;
    std::optional<ProgressRecord> progress;
    {
        const std::lock_guard lock(mutex_);
        const auto found = entries_.find(part.serial);
        if (found == entries_.end()) return;
        Entry& entry = found->second;
        entry.backoff.reset();
        entry.is_kept = false;
        for (std::size_t i = 0; i < part.segments; ++i) {
            const Segment& segment = entry.waiting.front();
            if (segment.end.offset[0] >= 0) {
                entry.acknowledged = segment.end;
                // Of an attempt that is over for the server nothing is sent again.
                if (!result.finished) progress = ProgressRecord{segment.end, {}};
            }
            entry.waiting_values -= values_of(segment);
            if (entry.resent > 0) --entry.resent;
            entry.waiting.pop_front();
        }
        if (stale) {
            entry.waiting.clear();
            entry.waiting_values = 0;
        }
        if (part.has_end) entry.ends_alone = true;
        room = entry.was_full && entry.waiting_values < kWaitingMax / 2;
        if (room) entry.was_full = false;
    }
    if (progress) {
        const Result<void> noted = part.files.write_progress(*progress);
        if (!noted) log_warning(noted.error().text());
    }
    if (result.finished) {
        if (result.checkpoints) events_.checkpoints(*result.checkpoints);
        {
            const std::lock_guard lock(mutex_);
            entries_.erase(part.serial);
        }
        return events_.finished(part.serial);
    }
    {
        // Only now another thread may send for it: the notes stay in order.
        const std::lock_guard lock(mutex_);
        const auto found = entries_.find(part.serial);
        if (found != entries_.end()) found->second.busy = false;
        changed_.notify_all();
    }
    if (stale) events_.stale(part.serial);
    if (room) events_.room(part.serial);
}

void Outbox::send_finish(tracker::Client& client, std::uint64_t serial) {
    std::string path;
    Json body;
    {
        const std::lock_guard lock(mutex_);
        const auto found = entries_.find(serial);
        if (found == entries_.end()) return;
        const tuner::AttemptId& id = found->second.id;
        path = agent_path_ + "/attempts/" + percent_encode(id.run_id, false) + "/" +
               std::to_string(id.attempt) + "/finish";
        body = tuner::to_json(*found->second.finish);
    }
    std::optional<Result<Json>> answer = insist(client, path, body);
    for (int i = 0; i < kUnknownTries && answer && !*answer; ++i) {
        if (answer->error().code != Code::kResourceDoesNotExist) break;
        // The server may have forgotten the agent, or the run may have been deleted: registering
        // tells which.
        events_.unknown_agent();
        if (!pause(kRegisterPause_ms)) return;
        answer = insist(client, path, body);
    }
    if (!answer) return;
    // RESOURCE_CONFLICT: the attempt was another's already; that is an answer, not an error.
    if (!*answer && answer->error().code != Code::kResourceConflict)
        log_warning("the server refused the end of an attempt: " + answer->error().text());
    if (*answer) {
        Result<tuner::FinishReply> reply = tuner::from_json<tuner::FinishReply>(**answer);
        if (reply && reply->checkpoints) events_.checkpoints(std::move(*reply->checkpoints));
    }
    {
        const std::lock_guard lock(mutex_);
        entries_.erase(serial);
    }
    events_.finished(serial);
}

}  // namespace tune::worker
