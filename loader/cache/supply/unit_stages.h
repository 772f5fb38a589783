#pragma once
// How far each unit is on its way here, and which is to be fetched next. Internal to the loader.

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace tune::loader {

enum class Stage : std::uint8_t {
    kIdle,      ///< not wanted
    kQueued,    ///< to be looked for in the cache
    kLooking,   ///< a thread does
    kAbsent,    ///< to be fetched
    kBusy,      ///< a thread is at it, or another process
    kNoRoom,    ///< the cache has no room for it
    kReady,     ///< mapped and pinned
    kInMemory,  ///< not in the cache
    kFailed,
};

/// The window of a plan: units are wanted from the first batch that needs them until it has passed
/// the last one. Not thread-safe.
class UnitStages {
public:
    UnitStages(std::size_t count, std::function<std::uint64_t(std::size_t unit)> bytes)
        : units_(count), bytes_(std::move(bytes)) {}

    [[nodiscard]] Stage stage(std::size_t unit) const { return units_[unit].stage; }
    [[nodiscard]] std::uint64_t first_batch(std::size_t unit) const {
        return units_[unit].first_batch;
    }
    /// The last batch that was seen to need it; 0: none.
    [[nodiscard]] std::uint64_t last_batch(std::size_t unit) const {
        return units_[unit].last_batch;
    }
    /// It can be read.
    [[nodiscard]] bool is_here(std::size_t unit) const {
        return stage(unit) == Stage::kReady || stage(unit) == Stage::kInMemory;
    }
    /// It can be read, or reading says why it cannot.
    [[nodiscard]] bool has_come(std::size_t unit) const {
        return is_here(unit) || stage(unit) == Stage::kFailed;
    }

    /// `batch` needs the unit, which is queued unless it is wanted already.
    void want(std::size_t unit, std::uint64_t batch);
    /// Nobody wants it any more; what it stood at.
    Stage release(std::size_t unit);
    /// Wanted units that no batch from `first` on was seen to need and no thread has in hand. With
    /// `keeps_ready`, not those that are mapped.
    [[nodiscard]] std::vector<std::size_t> passed(std::uint64_t first, bool keeps_ready) const;
    /// Wanted units that neither can be read nor are in hand.
    [[nodiscard]] std::vector<std::size_t> outstanding() const;

    /// The most urgent one that is queued: kLooking from here on.
    [[nodiscard]] std::optional<std::size_t> take_queued();
    /// The most urgent one that is absent: kBusy from here on.
    [[nodiscard]] std::optional<std::size_t> take_absent();
    /// It is not in the cache. REQUIRES: kLooking.
    void set_absent(std::size_t unit) { put_in_line(unit, Stage::kAbsent); }
    /// What came of it: kReady, kInMemory, kNoRoom or kFailed. REQUIRES: kLooking or kBusy.
    void settle(std::size_t unit, Stage stage);
    /// Units without room that a batch before `before` needs are absent again.
    void retry_without_room(std::uint64_t before);

    [[nodiscard]] std::size_t queued_count() const { return queued_.size(); }
    [[nodiscard]] bool has_absent() const { return !absent_.empty(); }
    /// Wanted units that have not come.
    [[nodiscard]] std::size_t pending() const { return pending_; }
    /// Of all that are wanted.
    [[nodiscard]] std::uint64_t window_bytes() const { return window_bytes_; }

private:
    struct State {
        Stage stage = Stage::kIdle;
        std::uint64_t first_batch = 0;  ///< that wants it, while it is wanted
        std::uint64_t last_batch = 0;
    };
    using Line = std::set<std::pair<std::uint64_t, std::size_t>>;  // by first batch

    [[nodiscard]] bool is_in_hand(std::size_t unit) const {
        return stage(unit) == Stage::kLooking || stage(unit) == Stage::kBusy;
    }
    void put_in_line(std::size_t unit, Stage stage);
    [[nodiscard]] std::optional<std::size_t> take(Line& line, Stage stage);

    std::vector<State> units_;
    const std::function<std::uint64_t(std::size_t unit)> bytes_;
    std::set<std::size_t> wanted_;  // not idle
    std::set<std::size_t> no_room_;
    Line queued_;
    Line absent_;
    std::size_t pending_ = 0;
    std::uint64_t window_bytes_ = 0;
};

}  // namespace tune::loader
