#pragma once
// Answers of the store that hold until it changes what they came from.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace tune::tracker {

/// Values by text, each of one epoch (Store::permission_epoch). Holds at most `size_max`; one more
/// drops all, and they are read again one by one. Thread-safe; cost: one look-up under a lock.
template <class Value>
class EpochCache {
public:
    explicit EpochCache(std::size_t size_max) : size_max_(size_max) {}

    /// The value, if it is of this epoch.
    [[nodiscard]] std::optional<Value> find(std::string_view key, std::uint64_t epoch) const {
        const std::lock_guard lock(mutex_);
        const auto found = entries_.find(key);
        if (found == entries_.end() || found->second.epoch != epoch) return std::nullopt;
        return found->second.value;
    }
    /// The value of any epoch: what has to be looked at again before it counts.
    [[nodiscard]] std::optional<Value> find_old(std::string_view key) const {
        const std::lock_guard lock(mutex_);
        const auto found = entries_.find(key);
        if (found == entries_.end()) return std::nullopt;
        return found->second.value;
    }
    /// `epoch` was read before what the value came from.
    void put(std::string key, Value value, std::uint64_t epoch) {
        const std::lock_guard lock(mutex_);
        if (entries_.size() >= size_max_) entries_.clear();
        entries_.insert_or_assign(std::move(key), Entry{std::move(value), epoch});
    }
    void erase(std::string_view key) {
        const std::lock_guard lock(mutex_);
        if (const auto found = entries_.find(key); found != entries_.end()) entries_.erase(found);
    }

private:
    struct Entry {
        Value value;
        std::uint64_t epoch = 0;
    };
    struct TextHash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const {
            return std::hash<std::string_view>{}(text);
        }
    };

    const std::size_t size_max_;
    mutable std::mutex mutex_;
    std::unordered_map<std::string, Entry, TextHash, std::equal_to<>> entries_;
};

}  // namespace tune::tracker
