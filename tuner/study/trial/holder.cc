// A holder to and from its trial's document, and what several ends make together. Most trials have
// one process on a shared machine: of those no member is written, and one is made when read.

#include "tuner/study/trial/holder.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace tune::tuner {
namespace {

/// The later explains the earlier.
constexpr std::array kByWeight = {Outcome::kDone,      Outcome::kCancelled, Outcome::kPruned,
                                  Outcome::kFailed,    Outcome::kOom,       Outcome::kBadConfig,
                                  Outcome::kPreempted, Outcome::kLost};

auto weight(Outcome outcome) {
    return std::find(kByWeight.begin(), kByWeight.end(), outcome) - kByWeight.begin();
}

Json part_to_json(const Part& part) {
    Json json = {{"nproc", part.nproc}, {"slots", part.slots}};
    if (part.cores > 0) json["cores"] = part.cores;
    if (part.memory_bytes > 0) json["memory_bytes"] = part.memory_bytes;
    if (!part.pool.empty()) json["pool"] = {part.pool, part.pool_size};
    for (const GrantedGpu& gpu : part.gpus) json["gpus"].push_back({gpu.uuid, gpu.bytes});
    return json;
}

Part part_from_json(const Json& json) {
    Part part{.nproc = json.value("nproc", 1),
              .slots = json.value("slots", 1),
              .cores = json.value("cores", 0),
              .memory_bytes = json.value("memory_bytes", std::int64_t{0})};
    if (json.contains("pool")) {
        part.pool = json["pool"].at(0).get<std::string>();
        part.pool_size = json["pool"].at(1).get<int>();
    }
    if (json.contains("gpus"))
        for (const Json& gpu : json["gpus"])
            part.gpus.push_back({gpu.at(0).get<std::string>(), gpu.at(1).get<std::int64_t>()});
    return part;
}

Json member_to_json(const Member& member) {
    Json json = {{"agent_id", member.agent_id},
                 {"host", member.host},
                 {"request_id", member.request_id},
                 {"part", part_to_json(member.part)}};
    if (member.node.port > 0) json["node"] = {member.node.address, member.node.port};
    if (member.has_ended) json["ended"] = member.finish_request;
    return json;
}

Member member_from_json(const Json& json) {
    Member member{.agent_id = json.at("agent_id").get<std::string>(),
                  .host = json.value("host", ""),
                  .request_id = json.value("request_id", ""),
                  .part = part_from_json(json.at("part"))};
    if (json.contains("node"))
        member.node = {json["node"].at(0).get<std::string>(), json["node"].at(1).get<int>()};
    member.has_ended = json.contains("ended");
    if (member.has_ended) member.finish_request = json["ended"].get<std::string>();
    return member;
}

/// What every trial of one process on a shared machine has.
bool is_plain(const Holder& holder) {
    return !holder.is_gang() && (holder.members.empty() || holder.members[0].part == Part());
}

}  // namespace

const Member* Holder::find_running(const std::string& id) const {
    for (const Member& member : members)
        if (member.agent_id == id && !member.has_ended) return &member;
    return nullptr;
}

Member* Holder::find_running(const std::string& id) {
    return const_cast<Member*>(std::as_const(*this).find_running(id));
}

bool Holder::has_running() const {
    return std::any_of(members.begin(), members.end(),
                       [](const Member& member) { return !member.has_ended; });
}

std::optional<std::int64_t> Holder::first_expiry_ms() const {
    if (ttl_ms <= 0) return std::nullopt;
    if (members.empty()) return expires_ms;
    std::optional<std::int64_t> first;
    for (const Member& member : members)
        if (!member.has_ended && !member.is_ending)
            first = std::min(first.value_or(member.expires_ms), member.expires_ms);
    return first;
}

void add_verdict(Holder& holder, const Member& member, FinishRequest finish) {
    const std::string where = member.host.empty() ? "" : "on " + member.host + ": ";
    if (!finish.reason.empty()) finish.reason = where + finish.reason;
    if (!holder.verdict) {
        holder.verdict = std::move(finish);
        return;
    }
    FinishRequest& verdict = *holder.verdict;
    const FinishRequest before = verdict;
    if (weight(finish.outcome) > weight(verdict.outcome)) verdict = finish;
    verdict.max_rss_kb = std::max(before.max_rss_kb, finish.max_rss_kb);
    verdict.cpu_ms = before.cpu_ms + finish.cpu_ms;
    verdict.wall_ms = std::max(before.wall_ms, finish.wall_ms);
    verdict.peak_memory_bytes = std::max(before.peak_memory_bytes, finish.peak_memory_bytes);
    verdict.peak_gpu_memory_bytes =
        std::max(before.peak_gpu_memory_bytes, finish.peak_gpu_memory_bytes);
}

Json holder_to_json(const Holder& holder) {
    Json json = {{"agent_id", holder.agent_id},
                 {"request_id", holder.request_id},
                 {"ttl_ms", holder.ttl_ms}};
    if (!holder.credential_hash.empty()) json["credential"] = holder.credential_hash;
    if (!is_plain(holder))
        for (const Member& member : holder.members)
            json["members"].push_back(member_to_json(member));
    if (holder.verdict) json["verdict"] = to_json(*holder.verdict);
    return json;
}

Holder holder_from_json(const Json& json) {
    Holder holder{.agent_id = json.at("agent_id").get<std::string>(),
                  .request_id = json.at("request_id").get<std::string>(),
                  .ttl_ms = json.at("ttl_ms").get<std::int64_t>(),
                  .credential_hash = json.value("credential", "")};
    if (json.contains("members"))
        for (const Json& member : json["members"])
            holder.members.push_back(member_from_json(member));
    else if (!holder.agent_id.empty())
        holder.members.push_back({.agent_id = holder.agent_id, .request_id = holder.request_id});
    if (json.contains("verdict"))
        if (const auto verdict = from_json<FinishRequest>(json["verdict"]))
            holder.verdict = *verdict;
    return holder;
}

}  // namespace tune::tuner
