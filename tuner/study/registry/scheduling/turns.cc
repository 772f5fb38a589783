// Whose turn it is. Studies of a higher priority come first; of one priority those of the user who
// holds the smaller share of the machines, of one user the study that does; then the one with fewer
// running trials. A share is the largest of the fractions of places, cores, memory and GPUs
// (dominant resource share): who asks for GPUs and who asks for cores are measured alike. What a
// user holds in all of his studies counts, whatever their priorities.

#include "tuner/study/registry/scheduling/turns.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tune::tuner {
namespace {

/// The least that a trial takes, whatever agent it runs on.
Usage least_of(const TrialNeeds& needs) {
    Usage least{.slots = needs.shapes.front().nodes};
    for (const Shape& shape : needs.shapes)
        least.slots = std::min<std::int64_t>(least.slots, shape.nodes);
    const Shape& shape = needs.shapes.front();
    if (needs.gpu_bytes == 0)
        least.gpu_micros = std::int64_t{needs.gpus} * shape.nproc * shape.nodes * kGpuMicros;
    return least;
}

}  // namespace

int Turns::priority_of(const Study& study) const {
    const int asked = study.definition().priority();
    if (quotas_.empty()) return asked;
    const Quota& quota = quotas_.of(study.definition().user());
    return quota.priority ? std::min(asked, *quota.priority) : asked;
}

Turns::Standing Turns::standing_of(const Study& study) const {
    const Usage& all = agents_.capacity();
    return {.priority = priority_of(study),
            .user_share = dominant_share(agents_.held_by_user(study.definition().user()), all),
            .share = dominant_share(agents_.held_of(study), all),
            .running = study.trials().running().size(),
            .name = &study.name()};
}

bool Turns::comes_before(const Standing& a, const Standing& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    return std::tie(a.user_share, a.share, a.running, *a.name) <
           std::tie(b.user_share, b.share, b.running, *b.name);
}

bool Turns::may_lease(Study& study) const {
    if (!options_.only_study.empty() && study.name() != options_.only_study) return false;
    return !study.config().command.empty() && study.may_start(clock_.now_ms());
}

bool Turns::may_place(Study& study) const {
    return study.attendance().obstacle.empty() && may_lease(study);
}

std::vector<Study*> Turns::in_order() const {
    std::vector<std::pair<Standing, Study*>> found;
    for (const auto& [name, study] : book_.all())
        if (may_place(*study)) found.emplace_back(standing_of(*study), study.get());
    std::sort(found.begin(), found.end(),
              [](const auto& a, const auto& b) { return comes_before(a.first, b.first); });
    std::vector<Study*> studies;
    for (const auto& [standing, study] : found) studies.push_back(study);
    return studies;
}

void Turns::note_obstacle(Study& study) const {
    const bool is_for_agents = !study.config().command.empty();
    const bool is_served = options_.only_study.empty() || study.name() == options_.only_study;
    std::string obstacle =
        is_for_agents && is_served ? agents_.obstacle(study.needs().of_next()) : "";
    if (obstacle == study.attendance().obstacle) return;
    study.attendance().obstacle = std::move(obstacle);
}

void Turns::note_obstacles() const {
    for (const auto& [name, study] : book_.all()) note_obstacle(*study);
}

// --- quotas --------------------------------------------------------------------------------------

bool Turns::is_within_quota(const Study& study, const Usage& more) const {
    if (quotas_.empty()) return true;
    const Quota& quota = quotas_.of(study.definition().user());
    return quota_obstacle(quota, study.definition().user(),
                          agents_.held_by_user(study.definition().user()), more)
        .empty();
}

std::string Turns::quota_reason(const Study& study) const {
    if (quotas_.empty()) return {};
    return quota_obstacle(quotas_.of(study.definition().user()), study.definition().user(),
                          agents_.held_by_user(study.definition().user()),
                          least_of(study.needs().of_next()));
}

Result<void> Turns::load_quotas() {
    TUNE_TRY(documents, store_.list_documents(kQuotaCollection));
    for (const tracker::Document& document : documents) quotas_.load(document);
    return {};
}

void Turns::set_quota(Quota quota, Done<void> done) {
    LockedBatch locked(lock_);
    Result<void> checked = check_quota(quota);
    if (checked && quotas_.is_full() && !quotas_.has(quota.user))
        checked = Error{Code::kResourceExhausted,
                        "there are " + std::to_string(kQuotasMax) + " quotas already; remove some"};
    if (!checked) return locked.after([done, error = checked.error()] { done(error); });
    std::vector<tracker::Command> commands;
    commands.push_back(put_quota_command(quota));
    locked.write(std::move(commands), [this, quota, done](LockedBatch& later, Result<void> result) {
        if (result) {
            quotas_.set(quota);
            events_.wake_leases(later);
        }
        later.after([done, result = std::move(result)] { done(result); });
    });
}

void Turns::remove_quota(const std::string& user, Done<void> done, const Recording& record) {
    LockedBatch locked(lock_);
    if (!quotas_.has(user))
        return locked.after([done, user] {
            done(Error{Code::kResourceDoesNotExist,
                       "there is no quota of user '" + user + "'; `tune quota ls` lists them"});
        });
    std::vector<tracker::Command> commands;
    commands.push_back(tracker::DeleteDocument{kQuotaCollection, user});
    if (record) commands = record(nullptr, std::move(commands));
    locked.write(std::move(commands), [this, user, done](LockedBatch& later, Result<void> result) {
        if (result) {
            quotas_.remove(user);
            events_.wake_leases(later);
        }
        later.after([done, result = std::move(result)] { done(result); });
    });
}

}  // namespace tune::tuner
