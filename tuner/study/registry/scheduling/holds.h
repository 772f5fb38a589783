#pragma once
// Agents that are kept for trials that wait: what becomes free there is theirs first.

#include <cstddef>
#include <cstdint>
#include <list>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tuner/study/placement/room.h"
#include "tuner/study/study.h"

namespace tune::tuner {

/// Room for one trial of a study, on as many agents as its shape has machines.
struct Hold {
    Study* study = nullptr;
    Shape shape;
    std::set<std::string> agents;
    std::int64_t until_ms = 0;  ///< monotonic; longer while what runs there has to end first
    /// Trials of lower priority were asked to end for it; one that waits its turn has none, and
    /// there is one such hold at a time.
    bool is_preempting = false;
    std::size_t preempted = 0;  ///< so many were asked
};

/// Not thread-safe: part of what the lock of Studies guards. O(1) a look-up by agent.
class Holds {
public:
    using List = std::list<Hold>;

    [[nodiscard]] const List& all() const { return holds_; }
    [[nodiscard]] List& all() { return holds_; }
    [[nodiscard]] bool empty() const { return holds_.empty(); }
    /// Those that keep the agent, the oldest first.
    [[nodiscard]] const std::vector<Hold*>& on(const std::string& agent_id) const {
        static const std::vector<Hold*> kNone;
        const auto found = by_agent_.find(agent_id);
        return found == by_agent_.end() ? kNone : found->second;
    }
    /// The one that waits its turn; nullptr: none does.
    [[nodiscard]] Hold* waiting() {
        for (Hold& hold : holds_)
            if (!hold.is_preempting) return &hold;
        return nullptr;
    }
    [[nodiscard]] std::size_t count_of(const Study& study) const {
        std::size_t count = 0;
        for (const Hold& hold : holds_) count += hold.study == &study ? 1 : 0;
        return count;
    }
    [[nodiscard]] std::size_t agents_kept() const { return by_agent_.size(); }

    Hold& add(Hold hold) {
        Hold& added = holds_.emplace_back(std::move(hold));
        for (const std::string& id : added.agents) by_agent_[id].push_back(&added);
        return added;
    }
    /// One agent more.
    void keep(Hold& hold, const std::string& agent_id) {
        if (hold.agents.insert(agent_id).second) by_agent_[agent_id].push_back(&hold);
    }
    void let_go(Hold& hold, const std::string& agent_id) {
        if (hold.agents.erase(agent_id) == 0) return;
        const auto found = by_agent_.find(agent_id);
        std::erase(found->second, &hold);
        if (found->second.empty()) by_agent_.erase(found);
    }
    List::iterator drop(List::iterator hold) {
        const std::set<std::string> agents = hold->agents;
        for (const std::string& id : agents) let_go(*hold, id);
        return holds_.erase(hold);
    }

private:
    List holds_;
    std::unordered_map<std::string, std::vector<Hold*>> by_agent_;
};

}  // namespace tune::tuner
