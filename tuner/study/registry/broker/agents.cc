// The agents that called lately, and which trials each holds. Both are kept as they change: a
// change of one trial, or the look for who fell silent, is a few look-ups however many agents there
// are.

#include "tuner/study/registry/broker/agents.h"

#include <algorithm>

#include "base/text/utf8.h"
#include "tuner/options/bytes.h"
#include "tuner/study/registry/timers.h"

namespace tune::tuner {
namespace {

std::string count_text(int count, const std::string& noun) {
    return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

void add_words(std::string& text, const std::string& more) {
    if (!more.empty()) text += (text.empty() ? "" : " and ") + more;
}

/// "2 GPUs and 3 cores"; empty: any agent will do.
std::string needs_text(const TrialNeeds& needs, int nproc) {
    std::string text;
    if (needs.gpus > 0) {
        text = count_text(needs.gpus * nproc, "GPU");
        if (needs.gpu_bytes > 0)
            text += " with " + rounded_bytes_text(needs.gpu_bytes) + " of memory" +
                    (needs.gpus * nproc > 1 ? " each" : "");
    }
    if (needs.cpus > 0) add_words(text, count_text(needs.cpus * nproc, "core"));
    if (needs.memory_bytes > 0)
        add_words(text, rounded_bytes_text(needs.memory_bytes * nproc) + " of memory");
    for (const std::string& label : needs.labels) add_words(text, "label '" + label + "'");
    return text;
}

std::string room_words(const Room& room) {
    std::string text = count_text(static_cast<int>(room.gpus.size()), "GPU");
    std::int64_t most = 0;
    for (const GpuRoom& gpu : room.gpus) most = std::max(most, gpu.bytes);
    if (most > 0) text += " with " + rounded_bytes_text(most);
    text += " and " + count_text(room.cores_all, "core");
    if (room.memory_all > 0) text += " and " + rounded_bytes_text(room.memory_all) + " of memory";
    if (!room.labels.empty()) {
        text += " and the labels";
        for (const std::string& label : room.labels) text += " '" + label + "'";
    }
    return text;
}

}  // namespace

Result<void> check_registration(const RegisterRequest& facts) {
    const auto check_count = [](const char* field, std::size_t count,
                                std::size_t most) -> Result<void> {
        if (count <= most) return {};
        return Error{Code::kInvalidParameterValue,
                     "field '" + std::string(field) + "' of an agent's registration has " +
                         std::to_string(count) + " entries; at most " + std::to_string(most) +
                         " are taken"};
    };
    const auto check_word = [](const char* field, const std::string& word) -> Result<void> {
        if (word.size() <= kAgentWordBytesMax) return {};
        return Error{Code::kInvalidParameterValue,
                     "field '" + std::string(field) +
                         "' of an agent's registration has a text of " +
                         std::to_string(word.size()) + " bytes; at most " +
                         std::to_string(kAgentWordBytesMax) + " are taken"};
    };
    TUNE_TRY_VOID(check_word("host", facts.host));
    TUNE_TRY_VOID(check_word("address", facts.address));
    TUNE_TRY_VOID(check_word("version", facts.version));
    TUNE_TRY_VOID(check_word("session", facts.session));
    TUNE_TRY_VOID(check_count("devices", facts.devices.size(), kAgentGpusMax));
    TUNE_TRY_VOID(check_count("labels", facts.labels.size(), kAgentLabelsMax));
    TUNE_TRY_VOID(check_count("running", facts.running.size(), kAgentAttemptsMax));
    for (const std::string& uuid : facts.gpus) TUNE_TRY_VOID(check_word("gpus", uuid));
    for (const std::string& label : facts.labels) TUNE_TRY_VOID(check_word("labels", label));
    for (const GpuFacts& gpu : facts.devices) {
        TUNE_TRY_VOID(check_word("devices", gpu.uuid));
        TUNE_TRY_VOID(check_word("devices", gpu.name));
    }
    for (const AttemptId& attempt : facts.running)
        TUNE_TRY_VOID(check_word("running", attempt.run_id));
    return {};
}

std::size_t registration_bytes(const RegisterRequest& facts) {
    std::size_t bytes = sizeof(RegisterRequest) + facts.agent_id.size() + facts.host.size() +
                        facts.address.size() + facts.version.size() + facts.session.size();
    for (const std::string& uuid : facts.gpus) bytes += sizeof(GpuRoom) + 2 * uuid.size();
    for (const std::string& label : facts.labels) bytes += 2 * (sizeof(label) + label.size());
    for (const GpuFacts& gpu : facts.devices)
        bytes += sizeof(gpu) + gpu.uuid.size() + gpu.name.size();
    for (const AttemptId& attempt : facts.running) bytes += sizeof(attempt) + attempt.run_id.size();
    return bytes;
}

Error unknown_agent(const std::string& agent_id) {
    return {Code::kResourceDoesNotExist, "the agent '" + agent_id +
                                             "' is not registered (the server may have restarted); "
                                             "register again"};
}

Agent* Agents::find(const std::string& id) {
    const auto found = agents_.find(id);
    return found == agents_.end() ? nullptr : &found->second;
}

bool Agents::has_room_for(const RegisterRequest& facts) {
    const Agent* const before = find(facts.agent_id);
    const std::size_t freed = before == nullptr ? 0 : registration_bytes(before->facts);
    return bytes_ - freed + registration_bytes(facts) <= kAgentsBytesMax;
}

bool Agents::add(RegisterRequest facts, std::int64_t now_ms) {
    facts.slots = std::clamp(facts.slots, 0, kAgentSlotsMax);
    if (facts.gpus.size() > kAgentGpusMax) facts.gpus.resize(kAgentGpusMax);
    if (facts.excluded.size() > kAgentExcludedMax) facts.excluded.resize(kAgentExcludedMax);
    for (std::string& reason : facts.excluded) {
        if (reason.size() <= kExcludedBytesMax) continue;
        std::size_t end = kExcludedBytesMax;
        while (end > 0 && is_utf8_continuation(reason[end])) --end;
        reason.resize(end);
    }
    const bool is_new_kind = add_kind(facts);
    const auto [entry, is_new] = agents_.try_emplace(facts.agent_id);
    Agent& agent = entry->second;
    bool is_gone_kind = false;
    if (is_new)
        agent.place = by_silence_.insert(by_silence_.end(), facts.agent_id);
    else
        is_gone_kind = remove_kind(agent.facts);
    if (!is_new) {
        capacity_ -= capacity_of(room_of(agent.facts));
        bytes_ -= registration_bytes(agent.facts);
    }
    agent.facts = std::move(facts);
    bytes_ += registration_bytes(agent.facts);
    agent.room = room_of(agent.facts);
    capacity_ += capacity_of(agent.room);
    if (const auto* const held = held_by(agent.facts.agent_id))
        for (const auto& [run_id, ref] : *held)
            for (const Share& share : shares_.at(ref.trial).all)
                if (share.agent_id == agent.facts.agent_id) take(agent.room, share.part);
    note_room(agent.facts.agent_id);
    heard(agent, now_ms);
    return is_new_kind || is_gone_kind;
}

Agents::Kind Agents::kind_of(const RegisterRequest& facts) {
    return {facts.gpus.size(), facts.cpus, room_text(room_of(facts))};
}

bool Agents::add_kind(const RegisterRequest& facts) {
    if (facts.slots <= 0) return false;
    Alike& alike = kinds_[kind_of(facts)];
    if (alike.count == 0) alike.room = room_of(facts);
    // The second of a kind may be what a trial on two machines waits for.
    return ++alike.count <= static_cast<std::size_t>(kProcessesMax);
}

bool Agents::remove_kind(const RegisterRequest& facts) {
    const auto kind = kinds_.find(kind_of(facts));
    if (facts.slots <= 0 || kind == kinds_.end() || kind->second.count == 0) return false;
    const std::size_t left = --kind->second.count;
    if (left == 0) kinds_.erase(kind);
    return left < static_cast<std::size_t>(kProcessesMax);
}

void Agents::heard(Agent& agent, std::int64_t now_ms) {
    agent.heard_ms = now_ms;
    by_silence_.splice(by_silence_.end(), by_silence_, agent.place);
}

std::int64_t Agents::next_forgotten_ms() const {
    if (by_silence_.empty()) return Timers::kNever_ms;
    return agents_.at(by_silence_.front()).heard_ms + kAgentForgotten_ms;
}

bool Agents::forget(const std::string& id) {
    const auto agent = agents_.find(id);
    if (agent == agents_.end()) return false;
    const bool is_kind_gone = remove_kind(agent->second.facts);
    capacity_ -= capacity_of(room_of(agent->second.facts));
    bytes_ -= registration_bytes(agent->second.facts);
    ungrouped_.insert(id);
    by_silence_.erase(agent->second.place);
    agents_.erase(agent);
    return is_kind_gone;
}

bool Agents::forget_silent(std::int64_t now_ms) {
    bool is_kind_gone = false;
    while (next_forgotten_ms() <= now_ms)
        is_kind_gone = forget(std::string(by_silence_.front())) || is_kind_gone;
    return is_kind_gone;
}

void Agents::begin_share(TrialRef ref, const Share& share) {
    held_[share.agent_id].emplace(ref.trial->run_id, ref);
    if (Agent* const agent = find(share.agent_id)) take(agent->room, share.part);
    note_room(share.agent_id);
}

void Agents::end_share(const TrialRef& ref, const Share& share) {
    const auto held = held_.find(share.agent_id);
    held->second.erase(ref.trial->run_id);
    if (held->second.empty()) held_.erase(held);
    if (Agent* const agent = find(share.agent_id)) give_back(agent->room, share.part);
    note_room(share.agent_id);
}

void Agents::follow(Study& study, Trial& trial) {
    std::vector<Share> now;
    if (trial.state == TrialState::kRunning)
        for (const Member& member : trial.progress->holder.members)
            if (!member.has_ended) now.push_back({member.agent_id, member.part});
    const auto known = shares_.find(&trial);
    if (known != shares_.end() && known->second.all == now) return;
    const TrialRef ref{&study, &trial};
    if (known != shares_.end()) {
        for (const Share& share : known->second.all) end_share(ref, share);
        count(study, known->second.used, false);
        shares_.erase(known);
    }
    if (now.empty()) return;
    for (const Share& share : now) begin_share(ref, share);
    const Usage used = used_by(now);
    count(study, used, true);
    shares_.emplace(&trial, Shares{std::move(now), used});
}

Usage Agents::used_by(const std::vector<Share>& shares) {
    Usage used;
    for (const Share& share : shares) {
        const Agent* const agent = find(share.agent_id);
        used += usage_of(share.part, agent == nullptr ? Room() : agent->room);
    }
    return used;
}

void Agents::count(const Study& study, const Usage& used, bool is_taken) {
    for (Usage* const sum : {&held_of_[&study], &held_by_user_[study.definition().user()]})
        if (is_taken)
            *sum += used;
        else
            *sum -= used;
    // Neither list outlives what it lists.
    if (held_of_[&study] == Usage()) held_of_.erase(&study);
    if (held_by_user_[study.definition().user()] == Usage())
        held_by_user_.erase(study.definition().user());
}

Usage Agents::held_of(const Study& study) const {
    const auto found = held_of_.find(&study);
    return found == held_of_.end() ? Usage() : found->second;
}

Usage Agents::held_by_user(const std::string& user) const {
    const auto found = held_by_user_.find(user);
    return found == held_by_user_.end() ? Usage() : found->second;
}

void Agents::note_room(const std::string& id) {
    changed_.insert(id);
    ungrouped_.insert(id);
}

const Agents::Groups& Agents::groups() {
    for (const std::string& id : std::exchange(ungrouped_, {})) {
        if (const auto before = group_of_.extract(id)) {
            const auto group = groups_.find(before.mapped());
            group->second.erase(id);
            if (group->second.empty()) groups_.erase(group);
        }
        const Agent* const agent = find(id);
        if (agent == nullptr || agent->facts.slots <= 0) continue;
        std::string text = room_text(agent->room);
        groups_[text].insert(id);
        group_of_.emplace(id, std::move(text));
    }
    return groups_;
}

std::map<std::string, TrialRef>* Agents::held_by(const std::string& id) {
    const auto found = held_.find(id);
    return found == held_.end() ? nullptr : &found->second;
}

void Agents::each(const std::function<void(const Agent&)>& look) const {
    std::map<std::string_view, const Agent*> ordered;
    for (const auto& [id, agent] : agents_) ordered.emplace(id, &agent);
    for (const auto& [id, agent] : ordered) look(*agent);
}

// --- what fits -----------------------------------------------------------------------------------

std::size_t Agents::count_serving(const TrialNeeds& needs, int nproc) const {
    std::size_t count = 0;
    for (const auto& [kind, alike] : kinds_)
        if (part_in(alike.room, needs, nproc)) count += alike.count;
    return count;
}

std::optional<Shape> Agents::possible_shape(const TrialNeeds& needs) const {
    for (const Shape& shape : needs.shapes)
        if (count_serving(needs, shape.nproc) >= static_cast<std::size_t>(shape.nodes))
            return shape;
    return std::nullopt;
}

std::string Agents::obstacle(const TrialNeeds& needs) const {
    if (possible_shape(needs)) return {};
    if (kinds_.empty()) return "no agent is registered; `tune agent` starts one";
    const Shape& shape = needs.shapes.back();
    const std::string wanted = needs_text(needs, shape.nproc);
    const std::size_t serving = count_serving(needs, shape.nproc);
    if (shape.nodes > 1 && (serving > 0 || wanted.empty())) {
        const auto have = static_cast<int>(serving);
        return "a trial runs on " + std::to_string(shape.nodes) + " agents at once" +
               (wanted.empty() ? "" : ", each with " + wanted) + "; " + std::to_string(have) +
               (have == 1 ? " is registered" : " are registered") +
               (wanted.empty() ? "" : " that has this") + "; `tune agent` starts another";
    }
    const Room& largest = kinds_.rbegin()->second.room;  // most GPUs, then most cores
    return "no registered agent has the " + wanted + " that a trial needs; the largest has " +
           room_words(largest);
}

}  // namespace tune::tuner
