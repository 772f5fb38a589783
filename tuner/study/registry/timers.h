#pragma once
// What is due next, of many things of which each has one time.

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

namespace tune::tuner {

/// Not thread-safe. O(log n) a call; one entry a key.
class Timers {
public:
    static constexpr std::int64_t kNever_ms = std::numeric_limits<std::int64_t>::max();

    /// From now on the key is due at `at_ms`, and no more when it was due before.
    void set(const std::string& key, std::int64_t at_ms) {
        erase(key);
        order_.emplace(at_ms, key);
        at_.emplace(key, at_ms);
    }
    void erase(const std::string& key) {
        const auto found = at_.find(key);
        if (found == at_.end()) return;
        order_.erase({found->second, key});
        at_.erase(found);
    }
    /// When the first is due; kNever_ms: nothing is.
    [[nodiscard]] std::int64_t next_ms() const {
        return order_.empty() ? kNever_ms : order_.begin()->first;
    }
    /// Takes the first out if it is due.
    [[nodiscard]] std::optional<std::string> take_due(std::int64_t now_ms) {
        if (order_.empty() || next_ms() > now_ms) return std::nullopt;
        std::string key = order_.begin()->second;
        erase(key);
        return key;
    }
    [[nodiscard]] std::size_t size() const { return at_.size(); }

private:
    std::set<std::pair<std::int64_t, std::string>> order_;
    std::unordered_map<std::string, std::int64_t> at_;
};

}  // namespace tune::tuner
