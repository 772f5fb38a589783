// Whose turn it is. Studies of a higher priority come first; of one priority those of the user who
// holds the smaller share of the machines, of one user the study that does; then the one with fewer
// running trials. A share is the largest of the fractions of places, cores, memory and GPUs
// (dominant resource share): who asks for GPUs and who asks for cores are measured alike. What a
// user holds in all of his studies counts, whatever their priorities.

#include <algorithm>
#include <tuple>

#include "tuner/study/registry/studies_impl.h"

namespace tune::tuner {

int Studies::Impl::priority_of(const Study& study) const {
    const int asked = study.priority();
    if (quotas_.empty()) return asked;
    const Quota& quota = quotas_.of(study.user());
    return quota.priority ? std::min(asked, *quota.priority) : asked;
}

Studies::Impl::Standing Studies::Impl::standing_of(const Study& study) const {
    const Usage& all = agents_.capacity();
    return {.priority = priority_of(study),
            .user_share = dominant_share(agents_.held_by_user(study.user()), all),
            .share = dominant_share(agents_.held_of(study), all),
            .running = study.running().size(),
            .name = &study.name()};
}

bool Studies::Impl::comes_before(const Standing& a, const Standing& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    return std::tie(a.user_share, a.share, a.running, *a.name) <
           std::tie(b.user_share, b.share, b.running, *b.name);
}

bool Studies::Impl::may_place(Study& study) {
    return study.obstacle().empty() && may_lease(study);
}

std::vector<Study*> Studies::Impl::in_order() {
    std::vector<std::pair<Standing, Study*>> found;
    for (const auto& [name, study] : book_.all())
        if (may_place(*study)) found.emplace_back(standing_of(*study), study.get());
    std::sort(found.begin(), found.end(),
              [](const auto& a, const auto& b) { return comes_before(a.first, b.first); });
    std::vector<Study*> studies;
    for (const auto& [standing, study] : found) studies.push_back(study);
    return studies;
}

/// The study that waits and comes before this one; nullptr: none does. One that rests after agents
/// were kept for it in vain lets the others pass.
Study* Studies::Impl::study_before(const Study& study) {
    Study* first = nullptr;
    Standing best = standing_of(study);
    for (const auto& [name, other] : book_.all()) {
        if (other.get() == &study || hold_rests_.contains(other.get())) continue;
        if (!may_place(*other)) continue;
        const Standing standing = standing_of(*other);
        if (!comes_before(standing, best)) continue;
        best = standing;
        first = other.get();
    }
    return first;
}

// --- quotas --------------------------------------------------------------------------------------

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

bool Studies::Impl::is_within_quota(const Study& study, const Usage& more) const {
    if (quotas_.empty()) return true;
    const Quota& quota = quotas_.of(study.user());
    return quota_obstacle(quota, study.user(), agents_.held_by_user(study.user()), more).empty();
}

std::string Studies::Impl::quota_reason(const Study& study) const {
    if (quotas_.empty()) return {};
    return quota_obstacle(quotas_.of(study.user()), study.user(),
                          agents_.held_by_user(study.user()), least_of(study.needs()));
}

void Studies::Impl::set_quota(Quota quota, Done<void> done) {
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
            wake_leases(later);
        }
        later.after([done, result = std::move(result)] { done(result); });
    });
}

void Studies::Impl::remove_quota(const std::string& user, Done<void> done,
                                 const Recording& record) {
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
            wake_leases(later);
        }
        later.after([done, result = std::move(result)] { done(result); });
    });
}

}  // namespace tune::tuner
