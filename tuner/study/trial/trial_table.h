#pragma once
// The trials of a study, by number, by state and by the request that asked for them. Pure.
//
// Invariants:
//  - the trial of number n is the n-th that was added, and its address stays;
//  - counts, queued and running are those of the trials' states, which change here alone;
//  - an ended trial never changes its state again.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tuner/study/trial/trial.h"

namespace tune::tuner {

/// Not thread-safe: part of a Study. All but what says otherwise costs O(1) or O(log(trials)).
class TrialTable {
public:
    using Counts = std::array<std::size_t, kTrialStateCount>;

    [[nodiscard]] std::size_t size() const { return trials_.size(); }
    [[nodiscard]] bool empty() const { return trials_.empty(); }
    [[nodiscard]] auto begin() const { return trials_.begin(); }
    [[nodiscard]] auto end() const { return trials_.end(); }
    [[nodiscard]] auto begin() { return trials_.begin(); }
    [[nodiscard]] auto end() { return trials_.end(); }
    /// REQUIRES: number < size().
    [[nodiscard]] const Trial& operator[](std::uint64_t number) const { return trials_[number]; }
    [[nodiscard]] Trial& operator[](std::uint64_t number) { return trials_[number]; }
    /// nullptr: there is none of this number.
    [[nodiscard]] const Trial* find(std::uint64_t number) const;
    [[nodiscard]] Trial* find(std::uint64_t number);

    [[nodiscard]] const Counts& counts() const { return counts_; }
    [[nodiscard]] std::size_t count(TrialState state) const {
        return counts_[static_cast<std::size_t>(state)];
    }
    /// Trials that came to a result: complete and pruned ones.
    [[nodiscard]] std::size_t success_count() const {
        return count(TrialState::kComplete) + count(TrialState::kPruned);
    }
    /// Numbers of running trials.
    [[nodiscard]] const std::set<std::uint64_t>& running() const { return running_; }
    /// Numbers of queued trials.
    [[nodiscard]] const std::set<std::uint64_t>& queued() const { return queued_; }
    /// The oldest queued trial, which starts before the others; nullptr: none waits.
    [[nodiscard]] const Trial* next_queued() const;
    [[nodiscard]] Trial* next_queued();
    /// When the last trial ended; 0: none has.
    [[nodiscard]] std::int64_t last_end_ms() const { return last_end_ms_; }
    /// Trials whose last attempt the ask with this request id started, oldest first; not those that
    /// wait again. Cost: O(trials of this request).
    [[nodiscard]] std::vector<std::uint64_t> started_by_request(
        const std::string& request_id) const;
    /// The trial made by the enqueue with this request id; nothing if there was none.
    [[nodiscard]] std::optional<std::uint64_t> enqueued_by_request(
        const std::string& request_id) const;

    /// Adds a trial, which may have lived before a restart. REQUIRES: trial.number is size().
    Trial& add(Trial trial);
    /// Between queued and running.
    void move(Trial& trial, TrialState state);
    /// For good: `state` is an ended one.
    void end(Trial& trial, TrialState state, std::int64_t now_ms);
    /// The ask with this request id starts it; an empty id is nobody's.
    void note_asked(Trial& trial, std::string request_id);
    /// An enqueue with these values and this request id made it.
    void note_enqueued(Trial& trial, const Point& fixed, std::string request_id);

private:
    void place(const Trial& trial);

    std::deque<Trial> trials_;  // addresses are stable
    Counts counts_{};
    std::set<std::uint64_t> queued_;
    std::set<std::uint64_t> running_;
    std::unordered_map<std::string, std::vector<std::uint64_t>> by_request_;
    std::unordered_map<std::string, std::uint64_t> by_enqueue_;
    std::int64_t last_end_ms_ = 0;
};

}  // namespace tune::tuner
