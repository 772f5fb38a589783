#include "worker/agent/attempts/attempt_table.h"

#include <algorithm>
#include <utility>

namespace tune::worker {

Attempt& AttemptTable::insert(std::unique_ptr<Attempt> attempt) {
    const std::uint64_t serial = attempt->serial();
    return *attempts_.insert_or_assign(serial, std::move(attempt)).first->second;
}

Attempt* AttemptTable::find(std::uint64_t serial) const {
    const auto found = attempts_.find(serial);
    return found == attempts_.end() ? nullptr : found->second.get();
}

Attempt* AttemptTable::find(const tuner::AttemptId& id) const {
    for (const auto& [serial, attempt] : attempts_)
        if (attempt->record.id() == id) return attempt.get();
    return nullptr;
}

std::vector<Attempt*> AttemptTable::all() const {
    std::vector<Attempt*> all;
    for (const auto& [serial, attempt] : attempts_) all.push_back(attempt.get());
    return all;
}

void AttemptTable::add_counts(AttemptCounts& counts) const {
    for (const auto& [serial, attempt] : attempts_)
        ++(attempt->alive ? counts.running : counts.unreported);
}

void AttemptTable::add_held(std::vector<tuner::AttemptId>& ids) const {
    for (const auto& [serial, attempt] : attempts_)
        if (!attempt->finish_done && attempt->intent.intent != Intent::kLost)
            ids.push_back(attempt->record.id());
}

std::int64_t AttemptTable::longest_grace_ms() const {
    std::int64_t longest = 0;
    for (const auto& [serial, attempt] : attempts_)
        if (attempt->alive) longest = std::max(longest, attempt->lease().grace_ms);
    return longest;
}

}  // namespace tune::worker
