#pragma once
// The trials in pools that this agent has: those that are in one, and those whose end or log is not
// with the server yet.

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "worker/agent/attempts/attempt_parts.h"
#include "worker/agent/pools/pool.h"

namespace tune::worker {

/// "run/attempt".
[[nodiscard]] std::string key_of(const tuner::AttemptId& id);

/// Each trial stands under its serial and its id until it is erased; pointers hold until then. Loop
/// thread only.
class PoolTrials {
public:
    PoolTrial& insert(std::unique_ptr<PoolTrial> trial);
    void erase(const PoolTrial& trial);

    /// nullptr: there is none.
    [[nodiscard]] PoolTrial* find(std::uint64_t serial) const;
    [[nodiscard]] PoolTrial* find(const tuner::AttemptId& id) const;
    [[nodiscard]] bool has(const tuner::AttemptId& id) const { return find(id) != nullptr; }
    /// One of them has this folder.
    [[nodiscard]] bool has_folder(const std::filesystem::path& folder) const;
    [[nodiscard]] bool is_empty() const { return trials_.empty(); }

    /// The server knows of the ends of all trials of the pool.
    [[nodiscard]] bool is_reported(std::uint64_t pool) const;
    /// Those that are in no pool any more.
    [[nodiscard]] int unreported() const;
    void add_held(std::vector<tuner::AttemptId>& ids) const;

private:
    std::unordered_map<std::uint64_t, std::unique_ptr<PoolTrial>> trials_;
    std::unordered_map<std::string, std::uint64_t> by_id_;  // key_of
};

}  // namespace tune::worker
