// A lease is held by one of the three at a time, and what is said about an attempt is offered to
// each in turn: an attempt is named by its id by the server, and by its serial, which is unique
// among attempts and pools, by the agent's own parts.

#include "worker/agent/attempts/attempts.h"

#include <algorithm>
#include <utility>

#include "worker/agent/attempts/environment.h"
#include "worker/agent/pools/pools.h"

namespace tune::worker {
namespace {

tuner::Outcome outcome_of(Intent intent) {
    if (intent == Intent::kPrune) return tuner::Outcome::kPruned;
    return intent == Intent::kStop ? tuner::Outcome::kCancelled : tuner::Outcome::kPreempted;
}

Intent intent_of(tuner::Action action) {
    switch (action) {
        case tuner::Action::kPrune: return Intent::kPrune;
        case tuner::Action::kCheckpointStop: return Intent::kCheckpointStop;
        case tuner::Action::kProfile:  // ends nothing
        case tuner::Action::kStop: break;
    }
    return Intent::kStop;
}

}  // namespace

Attempts::Attempts(AttemptSettings settings, AttemptParts parts, std::function<void()> changed)
    : settings_(std::move(settings)),
      parts_(std::move(parts)),
      changed_(std::move(changed)),
      checkpoint_folders_({.root = settings_.checkpoint_root,
                           .state = settings_.checkpoint_state,
                           .spare = settings_.state_dir / "empty",
                           // One that other agents share has rights of its own.
                           .own = settings_.state_dir / "checkpoints",
                           .stores = settings_.stores_checkpoints}),
      results_(*parts_.loop, *parts_.transfer, checkpoint_folders_,
               settings_.checkpoint_deadline_ms, [this] { publish(); }),
      environments_(*parts_.loop, parts_.environment, settings_.gpus, settings_.driver_version),
      shared_(shared_parts()),
      wake_(shared_.wake_path, wake_events()),
      queue_(*parts_.loop, *parts_.devices, settings_.slots, *parts_.transfer, checkpoint_folders_,
             settings_.state_dir / "models", settings_.checkpoint_deadline_ms, start_hooks()),
      singles_(shared_),
      pools_(std::make_unique<Pools>(
          shared_,
          [this](const tuner::Lease& lease, tuner::Outcome outcome, const std::string& reason) {
              singles_.refuse(lease, outcome, reason);
          })) {}

Attempts::~Attempts() = default;

SharedParts Attempts::shared_parts() {
    return {.settings = settings_,
            .agent = parts_,
            .checkpoint_folders = checkpoint_folders_,
            .results = results_,
            .environments = environments_,
            .durations = durations_,
            .wake_path = settings_.state_dir / "wake",
            .environment = own_environment(),
            .freed = [this] { on_devices_changed(); },
            .publish = [this] { publish(); }};
}

StartHooks Attempts::start_hooks() {
    return {
        .admit = [this](tuner::Lease& lease) { return admit(lease); },
        .launch =
            [this](ReadyLease ready) {
                if (ready.lease.pool)
                    pools_->open(std::move(ready.lease), std::move(ready.assignment));
                else
                    singles_.launch(std::move(ready));
            },
        .refuse = [this](const tuner::Lease& lease, tuner::Outcome outcome,
                         const std::string& reason) { singles_.refuse(lease, outcome, reason); },
        .changed = [this] { publish(); }};
}

WakeEvents Attempts::wake_events() {
    return {.woken =
                [this](std::span<const std::uint64_t> serials) {
                    singles_.gather();
                    for (const std::uint64_t serial : serials)
                        if (!singles_.pump(serial)) pools_->pump(serial);
                },
            .overflowed =
                [this] {
                    singles_.gather();
                    singles_.pump_all();
                    pools_->pump_all();
                }};
}

Result<void> Attempts::open_wake_fifo() {
    return wake_.open(*parts_.loop);
}

void Attempts::adopt_all() {
    pools_->adopt_all();
    singles_.adopt_all();
    publish_now();  // before it registers
}

// ---- What is held --------------------------------------------------------------------------

bool Attempts::holds(const tuner::AttemptId& id) const {
    if (singles_.has(id) || pools_->has(id)) return true;
    const std::vector<tuner::AttemptId> ids = queue_.ids();
    return std::find(ids.begin(), ids.end(), id) != ids.end();
}

AttemptCounts Attempts::counts() const {
    AttemptCounts counts;
    singles_.add_counts(counts);
    pools_->add_counts(counts);
    counts.storing = results_.finishing();
    return counts;
}

bool Attempts::is_idle() const {
    return singles_.is_idle() && queue_.is_empty() && pools_->is_idle();
}

std::int64_t Attempts::longest_grace_ms() const {
    return std::max(singles_.longest_grace_ms(), pools_->longest_grace_ms());
}

std::vector<tuner::AttemptId> Attempts::held() const {
    std::vector<tuner::AttemptId> ids;
    singles_.add_held(ids);
    for (tuner::AttemptId& id : queue_.ids()) ids.push_back(std::move(id));
    pools_->add_held(ids);
    return ids;
}

void Attempts::publish() {
    if (std::exchange(is_publishing_, true)) return;
    parts_.loop->post([this] {
        is_publishing_ = false;
        publish_now();
    });
}

void Attempts::publish_now() {
    parts_.server_client->set_running(held());
    parts_.server_client->set_pool_room(pools_->room());
    changed_();
}

// ---- Beginning -----------------------------------------------------------------------------

void Attempts::start(std::vector<tuner::Lease> leases) {
    for (tuner::Lease& lease : leases) {
        if (holds(lease.id()))
            parts_.server_client->free_slot();  // a repeated answer
        else
            queue_.start(std::move(lease));
    }
    publish_now();  // should we register just now, the server must hear that we have them
}

StartHooks::Admission Attempts::admit(tuner::Lease& lease) {
    if (lease.pool && pools_->join(lease)) {
        parts_.server_client->free_slot();
        return StartHooks::Admission::kTaken;
    }
    pools_->end_idle();
    return lease.pool && pools_->has_leftovers() ? StartHooks::Admission::kLater
                                                 : StartHooks::Admission::kDevices;
}

void Attempts::on_devices_changed() {
    queue_.retry();
    publish();
}

// ---- Ending --------------------------------------------------------------------------------

void Attempts::obey(const tuner::Directive& directive) {
    if (directive.action == tuner::Action::kProfile) return singles_.request_profile(directive);
    const tuner::AttemptId id{directive.run_id, directive.attempt};
    const Intent intent = intent_of(directive.action);
    if (singles_.end(id, intent, directive.reason) || pools_->obey(id, intent, directive.reason))
        return;
    if (const std::optional<tuner::Lease> lease = queue_.take(id)) {
        singles_.refuse(*lease, outcome_of(intent), directive.reason);
        publish();
    }
}

void Attempts::lose(const tuner::AttemptId& id) {
    constexpr const char* kReason = "the server gave up the attempt";
    while (queue_.take(id)) parts_.server_client->free_slot();
    static_cast<void>(singles_.end(id, Intent::kLost, kReason));
    static_cast<void>(pools_->obey(id, Intent::kLost, kReason));
    publish();
}

void Attempts::end_all(Intent intent, const std::string& reason, bool at_once) {
    for (const tuner::AttemptId& id : queue_.ids())
        if (const std::optional<tuner::Lease> lease = queue_.take(id))
            singles_.refuse(*lease, tuner::Outcome::kPreempted, reason);
    singles_.end_all(intent, reason, at_once);
    pools_->end_all(intent, reason, at_once);
    if (at_once) results_.hurry();
    publish();
}

void Attempts::on_gpu_fault(const std::string& uuid, const std::string& fault) {
    singles_.on_gpu_fault(uuid, fault);
    pools_->on_gpu_fault(uuid, fault);
    publish();
}

void Attempts::drain() {
    pools_->drain();
    publish();
}

// ---- What the parts of the agent report -----------------------------------------------------

void Attempts::on_finished(std::uint64_t serial) {
    if (!singles_.on_finished(serial)) pools_->on_finished(serial);
}

void Attempts::on_stale(std::uint64_t serial) {
    if (!singles_.on_stale(serial)) pools_->on_stale(serial);
}

void Attempts::on_room(std::uint64_t serial) {
    if (!singles_.pump(serial)) pools_->on_room(serial);
}

void Attempts::on_uploaded(std::uint64_t serial, bool final, bool uploaded) {
    if (!singles_.on_uploaded(serial, final, uploaded)) pools_->on_uploaded(serial, final);
}

void Attempts::on_checkpoint(const CheckpointJob& job, const CheckpointResult& result) {
    if (job.kind == CheckpointJob::Kind::kFetch) return queue_.on_fetched(job.serial, result);
    results_.on_result(job, result);
}

}  // namespace tune::worker
