#pragma once
// Agents whose lease polls wait, in groups of those that have the same left: for a trial all of a
// group fit or none does, so one of each is looked at.

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tune::tuner {

/// Not thread-safe. O(log n) a call, but for fronts().
class LeaseLine {
public:
    /// At the end of the line. `room`: room_text of what it has left.
    void add(const std::string& agent_id, std::string room) {
        place(agent_id, std::move(room), ++last_);
    }
    /// It has something else left, and keeps its place. Ignored for one that is not here.
    void move(const std::string& agent_id, std::string room) {
        const auto found = entries_.find(agent_id);
        if (found == entries_.end() || found->second.room == room) return;
        const std::uint64_t turn = found->second.turn;
        erase(agent_id);
        place(agent_id, std::move(room), turn);
    }
    void erase(const std::string& agent_id) {
        const auto found = entries_.find(agent_id);
        if (found == entries_.end()) return;
        const auto group = groups_.find(found->second.room);
        group->second.erase(found->second.turn);
        if (group->second.empty()) groups_.erase(group);
        entries_.erase(found);
    }
    [[nodiscard]] std::size_t size() const { return entries_.size(); }
    [[nodiscard]] bool empty() const { return entries_.empty(); }

    /// The longest waiting of each group, the longest waiting first. O(groups).
    [[nodiscard]] std::vector<std::string> fronts() const {
        std::map<std::uint64_t, std::string> by_turn;
        for (const auto& [room, agents] : groups_) by_turn.insert(*agents.begin());
        std::vector<std::string> ids;
        for (auto& [turn, id] : by_turn) ids.push_back(id);
        return ids;
    }
    /// At most `count` of the agent's group, the longest waiting first.
    [[nodiscard]] std::vector<std::string> group_of(const std::string& agent_id,
                                                    std::size_t count) const {
        std::vector<std::string> ids;
        for (const auto& [turn, id] : groups_.at(entries_.at(agent_id).room)) {
            if (ids.size() >= count) break;
            ids.push_back(id);
        }
        return ids;
    }

private:
    struct Entry {
        std::string room;
        std::uint64_t turn = 0;
    };

    void place(const std::string& agent_id, std::string room, std::uint64_t turn) {
        groups_[room].emplace(turn, agent_id);
        entries_.insert_or_assign(agent_id, Entry{std::move(room), turn});
    }

    std::unordered_map<std::string, Entry> entries_;
    std::map<std::string, std::map<std::uint64_t, std::string>> groups_;  // ids by turn
    std::uint64_t last_ = 0;
};

}  // namespace tune::tuner
