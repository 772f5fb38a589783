// Taking over what an earlier agent on the same state_dir left: running trials go on under their
// supervisors, ended ones are reported, and what cannot be known is ended and reported as lost.

#include <signal.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "worker/agent/attempts/attempt.h"
#include "worker/agent/attempts/attempts.h"
#include "worker/agent/pools/pools.h"

namespace tune::worker {
namespace {

constexpr std::size_t kRuleTailBytes = 256u << 10;

}  // namespace

void Attempts::adopt_all() {
    pools_->adopt_all();
    int running = 0;
    int ended = 0;
    std::error_code error;
    std::vector<std::filesystem::path> folders;
    for (const auto& item :
         std::filesystem::directory_iterator(settings_.state_dir / "attempts", error))
        if (item.is_directory()) folders.push_back(item.path());
    for (const std::filesystem::path& folder : folders) {
        const Adoption adoption = adopt(folder);
        running += adoption == Adoption::kRunning ? 1 : 0;
        ended += adoption == Adoption::kEnded ? 1 : 0;
    }
    if (running + ended > 0)
        log_info("adopted " + std::to_string(running) + " running and " + std::to_string(ended) +
                 " ended trials of an earlier agent");
    publish_now();  // before it registers
}

void Attempts::resume_output(Attempt& attempt) {
    const tuner::Lease& lease = attempt.record.lease;
    Result<MetricLines> lines = metric_lines(lease);
    if (!lines) lines = MetricLines::create({}, "");  // it was valid when the trial was started
    ProgressRecord progress = attempt.files.read_progress();
    attempt.output.emplace(attempt.files.directory(), std::move(*lines), progress.acknowledged);
    if (Result<LogRules> rules = rules_of(attempt)) {
        // What the earlier agent read it has told nobody.
        for (const int stream : {0, 1}) {
            std::istringstream text(attempt.output->tail(stream, kRuleTailBytes));
            for (std::string line; std::getline(text, line);) rules->read(line);
        }
        attempt.output->set_rules(std::move(*rules));
    }
    const std::vector<SentStretch> sent = std::move(progress.sent);
    parts_.outbox->open(attempt.record.serial, attempt.files, attempt.record.id(),
                        std::move(progress));
    for (const SentStretch& stretch : sent)
        parts_.outbox->add(attempt.record.serial,
                           attempt.output->read_again(stretch.end, stretch.timestamp_ms), true);
}

Attempts::Adoption Attempts::adopt(const std::filesystem::path& directory) {
    auto adopted = std::make_unique<Attempt>(AttemptFiles(directory));
    const AttemptFiles& files = adopted->files;
    Result<AttemptRecord> record = files.read_record();
    const Result<Owner> owner = files.read_or_take_ownership();
    if (!record || !owner || owner->pid == 0) {
        // Never begun: the server learns from our registration that we do not have it.
        if (!record) log_warning("an attempt cannot be taken over: " + record.error().text());
        files.remove();
        return Adoption::kNothing;
    }
    adopted->record = std::move(*record);
    adopted->intent = files.read_intent();
    const tuner::Lease& lease = adopted->record.lease;
    if (Result<std::filesystem::path> folder = checkpoint_folders_.path_of(checkpoint_key(lease)))
        adopted->checkpoint_dir = std::move(*folder);
    const bool is_part = !lease.devices.empty() && lease.devices.front().bytes > 0;
    const bool is_share = lease.gpus_per_trial > 0 && lease.gpus_per_trial < 1;
    adopted->assignment = {adopted->record.cores, adopted->record.gpus,
                           is_part    ? kPartOfGpu
                           : is_share ? lease.gpus_per_trial
                                      : 1};
    Result<Process> supervisor = find_process(owner->pid, owner->start_time);
    const bool same_boot = adopted->record.boot_id == boot_id_;
    Attempt& attempt = insert(std::move(adopted));
    const std::uint64_t serial = attempt.record.serial;
    parts_.devices->take_again(attempt.assignment);
    parts_.server_client->take_slot();
    ++started_;
    resume_output(attempt);
    if (supervisor && same_boot) {
        attempt.supervisor = std::move(*supervisor);
        note_used_gpus(attempt.assignment);
        watch(attempt);
        read_first(attempt);
        if (attempt.record.server_url != settings_.server_url)
            end(attempt, Intent::kMoved,
                "the server's address changed from " + attempt.record.server_url +
                    " while the trial ran",
                SIGTERM);
        pump(serial);
        return Adoption::kRunning;
    }
    keep_results(serial, lease, attempt.checkpoint_dir, attempt.files);
    attempt.exit = attempt.files.read_exit();
    if (attempt.exit || !same_boot)
        on_tree_gone(attempt);
    else
        sweep(serial);
    return Adoption::kEnded;
}

}  // namespace tune::worker
