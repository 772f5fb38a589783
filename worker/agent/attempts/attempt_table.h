#pragma once
// The single attempts that this agent has: those that run, and those whose end or logs are not with
// the server yet.

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "worker/agent/attempts/attempt.h"
#include "worker/agent/attempts/attempt_parts.h"

namespace tune::worker {

/// Each attempt stands under the serial of its record until it is erased; pointers hold until then.
/// Loop thread only.
class AttemptTable {
public:
    Attempt& insert(std::unique_ptr<Attempt> attempt);
    void erase(std::uint64_t serial) { attempts_.erase(serial); }

    /// nullptr: there is none.
    [[nodiscard]] Attempt* find(std::uint64_t serial) const;
    [[nodiscard]] Attempt* find(const tuner::AttemptId& id) const;
    /// In the order of their serials.
    [[nodiscard]] std::vector<Attempt*> all() const;
    [[nodiscard]] bool is_empty() const { return attempts_.empty(); }

    /// Those that run, and those that are gone but not settled.
    void add_counts(AttemptCounts& counts) const;
    /// Those whose leases must be kept: the server has not lost them, nor heard of their end.
    void add_held(std::vector<tuner::AttemptId>& ids) const;
    /// Of those that run; 0: none.
    [[nodiscard]] std::int64_t longest_grace_ms() const;

private:
    std::map<std::uint64_t, std::unique_ptr<Attempt>> attempts_;
};

}  // namespace tune::worker
