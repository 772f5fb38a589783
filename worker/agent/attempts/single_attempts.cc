// Driven by events on the loop: devices are there, a process tree is gone, output was announced,
// the outbox has room, a part knows what was asked for the end. Each of the parts keeps what it
// knows of an attempt under its serial and is told when the attempt begins, ends and is forgotten;
// here is the order of these steps.

#include "worker/agent/attempts/single_attempts.h"

#include <signal.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/id.h"
#include "base/log.h"
#include "base/system/file.h"
#include "worker/agent/attempts/conclusion.h"
#include "worker/agent/attempts/exit_class.h"
#include "worker/agent/attempts/kept_results.h"
#include "worker/agent/environment/environment_questions.h"
#include "worker/agent/time_limit.h"

namespace tune::worker {
namespace {

constexpr const char* kKeptFolder = "kept";
/// A slot whose trial could not be started for want of the machine's means rests this long.
constexpr int kStartFailureRest_ms = 1'000;

/// Its logs, as they are uploaded: of several machines each but the first has a folder.
LogJob log_job(const Attempt& attempt) {
    const tuner::Lease& lease = attempt.lease();
    const bool is_first = !lease.gang || lease.gang->node == 0;
    return {attempt.serial(), attempt.files, attempt.record.id(), lease.experiment_id,
            is_first ? "" : "node-" + std::to_string(lease.gang->node) + "/"};
}

}  // namespace

SingleAttempts::SingleAttempts(const SharedParts& shared)
    : shared_(shared),
      agent_(shared.agent),
      boot_id_(current_boot_id()),
      spare_folders_(shared.settings.state_dir / "spare"),
      start_(shared, boot_id_, spare_folders_),
      pump_(*agent_.loop, *agent_.outbox, *agent_.upload, shared.settings.log_upload_period_ms,
            {.found = [this](std::uint64_t serial,
                             const LineFindings& findings) { peaks_.note(serial, findings); },
             .read_to_end =
                 [this](std::uint64_t serial) {
                     if (Attempt* attempt = table_.find(serial)) conclude_if_known(*attempt);
                 }}),
      system_(*agent_.loop, agent_.gpu_watch,
              shared.settings.system_metrics ? shared.settings.system_metrics_period_ms : 0,
              [this](std::uint64_t serial, std::vector<tuner::ReportedMetric> metrics) {
                  agent_.outbox->add_metrics(serial, std::move(metrics));
              }),
      gpus_(*agent_.loop, agent_.gpu_watch, shared.settings.gpus,
            {.report =
                 [this](std::uint64_t serial, std::vector<tuner::ReportedMetric> metrics) {
                     agent_.outbox->add_metrics(serial, std::move(metrics));
                 },
             .settled =
                 [this](std::uint64_t serial) {
                     if (Attempt* attempt = table_.find(serial)) conclude_if_known(*attempt);
                 }}),
      peaks_(*agent_.loop, agent_.gpu_watch) {}

// ---- Beginning -----------------------------------------------------------------------------

void SingleAttempts::launch(ReadyLease ready) {
    Result<std::unique_ptr<Attempt>> made = start_.make(ready.lease, std::move(ready.assignment));
    if (!made)
        return refuse(ready.lease, outcome_of_failed_start(made.error()), made.error().message);
    Attempt& attempt = enter(std::move(*made));
    Result<AttemptStart::Running> running = start_.run(attempt);
    if (!running) {
        gpus_.forget(attempt.serial());
        table_.erase(attempt.serial());
        return refuse(ready.lease, outcome_of_failed_start(running.error()),
                      running.error().message);
    }
    ++started_;
    agent_.outbox->open(attempt.serial(), attempt.files, attempt.record.id(), {});
    for (const std::string& note : ready.notes) attempt.files.note(note);
    follow(attempt, std::move(running->output));
    ask_environment(attempt);
    watch(attempt, std::move(running->supervisor));
    gpus_.begin(attempt.serial(), attempt.files);
}

Attempt& SingleAttempts::enter(std::unique_ptr<Attempt> made) {
    Attempt& attempt = table_.insert(std::move(made));
    const std::uint64_t serial = attempt.serial();
    attempt.processes = std::make_unique<ProcessTree>(
        *agent_.loop, attempt.files,
        ProcessTreeEvents{
            .find_survivors =
                [id = attempt.record.id()] { return find_marked_processes(id.run_id, id.attempt); },
            .supervisor_ended = [this] { pump_.gather(); },
            .gone =
                [this, serial](std::optional<ExitRecord> exit) {
                    Attempt* ended = table_.find(serial);
                    if (ended == nullptr) return;
                    ended->exit = std::move(exit);
                    on_tree_gone(*ended);
                }});
    gpus_.open(serial, {attempt.assignment.gpus, attempt.assignment.gpu_share,
                        attempt.lease().devices, attempt.lease().attempt});
    return attempt;
}

void SingleAttempts::follow(const Attempt& attempt, TrialOutput output) {
    pump_.follow(log_job(attempt), std::move(output));
}

void SingleAttempts::watch(Attempt& attempt, Process supervisor) {
    const std::uint64_t serial = attempt.serial();
    const Result<void> watched = attempt.processes->watch(std::move(supervisor));
    if (!watched) {
        // Without a watch its end would go unseen; epoll refuses only when memory is out.
        log_error(watched.error().text());
        end(attempt, Intent::kShutdown, watched.error().message, SIGTERM);
    }
    const int pid = attempt.processes->pid();
    const std::vector<std::string>& gpus = attempt.assignment.gpus;
    system_.watch(serial, {pid, attempt.record.started_ms, gpus});
    peaks_.watch(serial, {gpus, pid, attempt.assignment.gpu_share >= 1});
    shared_.results.watch(serial, attempt.lease(), attempt.checkpoint_dir, attempt.files);
}

/// What it runs in is handed over before its end is.
void SingleAttempts::ask_environment(const Attempt& attempt) {
    const std::uint64_t serial = attempt.serial();
    const auto on_answer = [this, serial](RunEnvironment environment) {
        Attempt* known = table_.find(serial);
        if (known == nullptr) return;
        std::vector<tuner::ReportedTag> tags;
        for (auto& [key, value] : environment.tags) tags.push_back({key, std::move(value)});
        agent_.outbox->add_tags(serial, std::move(tags));
        if (!environment.diff.empty()) {
            const Result<void> written =
                write_file_atomic(known->files.path(kDiffFile), environment.diff);
            if (!written) known->files.note(written.error().text());
        }
        conclude_if_known(*known);
    };
    shared_.environments.ask(serial, attempt.lease(), attempt.search_path, attempt.record.gpus,
                             on_answer);
}

void SingleAttempts::refuse(const tuner::Lease& lease, tuner::Outcome outcome,
                            const std::string& reason) {
    auto attempt = std::make_unique<Attempt>(AttemptFiles(std::filesystem::path()));
    attempt->record.serial = new_serial();
    attempt->record.lease = lease;
    attempt->record.finish_request_id = random_hex(16);
    attempt->alive = false;
    attempt->logs_done = true;
    tuner::FinishRequest request;
    request.request_id = attempt->record.finish_request_id;
    request.outcome = outcome;
    request.reason = reason;
    const std::uint64_t serial = table_.insert(std::move(attempt)).serial();
    log_warning(short_name(lease) + " was not started: " + reason);
    agent_.outbox->open(serial, AttemptFiles(std::filesystem::path()), lease.id(), {});
    agent_.outbox->finish(serial, std::move(request));
    if (outcome == tuner::Outcome::kLost)
        agent_.loop->at(agent_.loop->now_ms() + kStartFailureRest_ms,
                        [this] { agent_.server_client->free_slot(); });
    else
        agent_.server_client->free_slot_at_end();
}

// ---- Taking over ---------------------------------------------------------------------------

void SingleAttempts::adopt_all() {
    int running = 0;
    int ended = 0;
    for (const std::filesystem::path& folder : folders_left(shared_.settings.state_dir)) {
        const Adoption adoption = adopt(folder);
        running += adoption == Adoption::kRunning ? 1 : 0;
        ended += adoption == Adoption::kEnded ? 1 : 0;
    }
    if (running + ended > 0)
        log_info("adopted " + std::to_string(running) + " running and " + std::to_string(ended) +
                 " ended trials of an earlier agent");
}

SingleAttempts::Adoption SingleAttempts::adopt(const std::filesystem::path& folder) {
    std::optional<LeftAttempt> left = take_over(folder, shared_.checkpoint_folders, boot_id_);
    if (!left) return Adoption::kNothing;
    Attempt& attempt = enter(std::move(left->attempt));
    const std::uint64_t serial = attempt.serial();
    agent_.devices->take_again(attempt.assignment);
    agent_.server_client->take_slot();
    ++started_;
    LeftOutput output = read_on(attempt, shared_.settings);
    const std::vector<SentStretch> sent = output.progress.sent;
    agent_.outbox->open(serial, attempt.files, attempt.record.id(), std::move(output.progress));
    for (const SentStretch& stretch : sent)
        agent_.outbox->add(serial, output.output.read_again(stretch.end, stretch.timestamp_ms),
                           true);
    follow(attempt, std::move(output.output));
    if (left->supervisor) {
        watch(attempt, std::move(*left->supervisor));
        gpus_.begin(serial, attempt.files);
        if (attempt.record.server_url != shared_.settings.server_url)
            end(attempt, Intent::kMoved,
                "the server's address changed from " + attempt.record.server_url +
                    " while the trial ran",
                SIGTERM);
        pump_.pump(serial);
        return Adoption::kRunning;
    }
    shared_.results.watch(serial, attempt.lease(), attempt.checkpoint_dir, attempt.files);
    attempt.exit = attempt.files.read_exit();
    if (attempt.exit || !left->is_of_this_boot)
        on_tree_gone(attempt);
    else
        attempt.processes->sweep();
    return Adoption::kEnded;
}

// ---- While it runs -------------------------------------------------------------------------

bool SingleAttempts::pump(std::uint64_t serial) {
    if (table_.find(serial) == nullptr) return false;
    pump_.pump(serial);
    return true;
}

void SingleAttempts::pump_all() {
    std::vector<std::uint64_t> serials;
    for (const Attempt* attempt : table_.all()) serials.push_back(attempt->serial());
    for (const std::uint64_t serial : serials) pump_.pump(serial);
}

/// A request that is known already stands in the file as it would again.
void SingleAttempts::request_profile(const tuner::Directive& directive) {
    const Attempt* attempt = table_.find({directive.run_id, directive.attempt});
    if (attempt == nullptr || !attempt->alive) return;
    const std::filesystem::path path = attempt->files.path(kProfileRequestFile);
    const std::string text =
        std::to_string(directive.turn) + " " + std::to_string(directive.steps) + "\n";
    if (const Result<std::string> known = read_file(path); known && *known == text) return;
    const Result<void> written = write_file_atomic(path, text);
    if (!written) attempt->files.note("no trace: " + written.error().text());
}

// ---- Ending --------------------------------------------------------------------------------

void SingleAttempts::end(Attempt& attempt, Intent intent, const std::string& reason, int signal) {
    if (!attempt.alive) return;
    const bool first = attempt.intent.intent == Intent::kNone;
    if (first || intent == Intent::kLost) {
        attempt.intent = {intent, reason};
        const Result<void> noted = attempt.files.write_intent(attempt.intent);
        if (!noted) log_warning(noted.error().text());
    }
    if (first || signal == SIGQUIT) attempt.processes->signal(signal);
}

bool SingleAttempts::end(const tuner::AttemptId& id, Intent intent, const std::string& reason) {
    Attempt* attempt = table_.find(id);
    if (attempt != nullptr) end(*attempt, intent, reason, SIGTERM);
    return attempt != nullptr;
}

void SingleAttempts::end_all(Intent intent, const std::string& reason, bool at_once) {
    for (Attempt* attempt : table_.all())
        end(*attempt, intent, reason, at_once ? SIGQUIT : SIGTERM);
}

void SingleAttempts::on_gpu_fault(const std::string& uuid, const std::string& fault) {
    for (Attempt* attempt : table_.all()) {
        const std::vector<std::string>& gpus = attempt->assignment.gpus;
        if (!attempt->alive || std::find(gpus.begin(), gpus.end(), uuid) == gpus.end()) continue;
        const std::string reason = uuid + ": " + fault;
        gpus_.set_fault(attempt->serial(), reason);
        end(*attempt, Intent::kGpuFault, reason, SIGTERM);
    }
}

bool SingleAttempts::on_stale(std::uint64_t serial) {
    Attempt* attempt = table_.find(serial);
    if (attempt == nullptr) return false;
    if (!attempt->alive) return true;
    end(*attempt, Intent::kLost, "the server gave up the attempt", SIGTERM);
    shared_.publish();
    return true;
}

void SingleAttempts::on_tree_gone(Attempt& attempt) {
    const std::uint64_t serial = attempt.serial();
    attempt.alive = false;
    system_.stop(serial);
    peaks_.stop(serial);
    shared_.results.stop(serial);
    attempt.assignment.locks.clear();  // so that a lock its supervisor held can be had again
    if (agent_.cgroups != nullptr) agent_.cgroups->remove(attempt.files.directory().filename());
    agent_.devices->release(attempt.assignment);
    agent_.gang_ports->give_back(attempt.ports);
    if (attempt.intent.intent == Intent::kLost)
        agent_.server_client->free_slot();
    else
        agent_.server_client->free_slot_at_end();
    gpus_.end(serial);
    pump_.finish(serial);  // may forget it
    shared_.freed();
}

/// Its end is judged once its output has been read and its GPUs have said whether they are well;
/// what it ran in goes before its end. Who answers last concludes it.
void SingleAttempts::conclude_if_known(Attempt& attempt) {
    const std::uint64_t serial = attempt.serial();
    if (!pump_.is_read_to_end(serial) || !gpus_.is_settled(serial) ||
        !shared_.environments.is_answered(serial))
        return;
    // An empty folder goes now: once the server knows of the end it may be the next attempt's.
    if (!attempt.checkpoint_dir.empty() && attempt.intent.intent != Intent::kLost)
        shared_.checkpoint_folders.leave(attempt.checkpoint_dir);
    const EndedAttempt ended{attempt, pump_.output(serial), gpus_.fault(serial),
                             peaks_.peak_bytes(serial)};
    tuner::FinishRequest request = conclude(ended, shared_.settings, agent_.exclude);
    write_notes(ended, request);
    ++finished_;
    if (request.outcome == tuner::Outcome::kDone)
        shared_.durations.add(attempt.lease().study, request.wall_ms);
    if (attempt.intent.intent == Intent::kLost) {
        agent_.outbox->drop(serial);
        attempt.finish_done = attempt.logs_done = true;
        shared_.results.forget(serial);
    } else {
        shared_.results.report_when_kept(serial, std::move(request),
                                         [this, serial](tuner::FinishRequest kept) {
                                             if (Attempt* left = table_.find(serial))
                                                 report_end(*left, std::move(kept));
                                             forget_if_done(serial);
                                         });
    }
    forget_if_done(serial);
}

void SingleAttempts::report_end(Attempt& attempt, tuner::FinishRequest request) {
    std::error_code ignored;
    bool any = false;
    for (const char* name : {kStdoutFile, kStderrFile, kAgentLogFile, kDiffFile})
        any = std::filesystem::exists(attempt.files.path(name), ignored) || any;
    attempt.logs_done = !any;
    if (any) {
        LogJob logs = log_job(attempt);
        logs.final = true;
        logs.keep_attempt = may_run_again(request.outcome);
        agent_.upload->submit(std::move(logs));
    }
    agent_.outbox->finish(attempt.serial(), std::move(request));
}

bool SingleAttempts::on_finished(std::uint64_t serial) {
    Attempt* attempt = table_.find(serial);
    if (attempt == nullptr) return false;
    attempt->finish_done = true;
    forget_if_done(serial);
    shared_.publish();
    return true;
}

bool SingleAttempts::on_uploaded(std::uint64_t serial, bool final, bool uploaded) {
    Attempt* attempt = table_.find(serial);
    if (attempt == nullptr) return false;
    if (!final) return true;
    attempt->logs_done = true;
    attempt->keep_folder = !uploaded;
    forget_if_done(serial);
    shared_.publish();
    return true;
}

void SingleAttempts::forget_if_done(std::uint64_t serial) {
    const Attempt* attempt = table_.find(serial);
    if (attempt == nullptr || !attempt->is_settled()) return;
    const AttemptFiles files = attempt->files;
    std::error_code ignored;
    if (attempt->keep_folder) {
        const std::filesystem::path kept = shared_.settings.state_dir / kKeptFolder;
        std::filesystem::create_directories(kept, ignored);
        std::filesystem::rename(files.directory(), kept / files.directory().filename(), ignored);
    } else if (!files.directory().empty()) {
        spare_folders_.take_back(files);
    }
    agent_.upload->forget(serial);
    pump_.forget(serial);
    gpus_.forget(serial);
    peaks_.forget(serial);
    table_.erase(serial);
}

void SingleAttempts::add_counts(AttemptCounts& counts) const {
    table_.add_counts(counts);
    counts.started += started_;
    counts.finished += finished_;
}

}  // namespace tune::worker
