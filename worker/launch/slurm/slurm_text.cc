// Slurm's own words and formats. Its commands print what they were asked for, a line a job or node;
// whatever else they print is an error, not something to guess at.

#include "worker/launch/slurm/slurm_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <set>
#include <sstream>

#include "base/text/text.h"

namespace tune::launch {
namespace {

/// `count` cells; the last one holds the rest of the line.
std::vector<std::string> split_cells(const std::string& line, std::size_t count) {
    std::vector<std::string> cells;
    std::size_t begin = 0;
    while (cells.size() + 1 < count) {
        const std::size_t end = line.find('|', begin);
        if (end == std::string::npos) break;
        cells.push_back(line.substr(begin, end - begin));
        begin = end + 1;
    }
    cells.push_back(line.substr(begin));
    return cells;
}

template <std::size_t N>
bool is_among(const std::array<std::string_view, N>& words, std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

AgentJob::State state_of_slurm(const std::string& word) {
    constexpr std::array<std::string_view, 8> kWaits = {
        "PENDING",      "CONFIGURING",  "REQUEUED",      "REQUEUE_FED",
        "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD", "POWER_UP_NODE"};
    constexpr std::array<std::string_view, 6> kRuns = {"RUNNING", "COMPLETING", "SUSPENDED",
                                                       "STOPPED", "SIGNALING",  "STAGE_OUT"};
    constexpr std::array<std::string_view, 2> kFails = {"FAILED", "OUT_OF_MEMORY"};
    if (is_among(kWaits, word)) return AgentJob::State::kPending;
    if (is_among(kRuns, word)) return AgentJob::State::kRunning;
    return is_among(kFails, word) ? AgentJob::State::kFailed : AgentJob::State::kEnded;
}

int leading_int(std::string_view text) {
    int number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

/// "tune:GROUP:STUDY ...": the parts; empty for another comment.
std::pair<std::string, std::string> parts_of_comment(const std::string& comment) {
    constexpr std::string_view kHead = "tune:";
    if (!comment.starts_with(kHead)) return {};
    const std::size_t colon = comment.find(':', kHead.size());
    if (colon == std::string::npos) return {};
    return {comment.substr(kHead.size(), colon - kHead.size()), comment.substr(colon + 1)};
}

}  // namespace

std::string comment_of(const Launch& launch) {
    return "tune:" + launch.group + ":" + launch.study;
}

std::string pending_text(const std::string& reason, const std::string& partition) {
    if (reason == "Resources" || reason == "Priority")
        return "partition " + partition + " is full (" + reason + ")";
    if (reason == "JobArrayTaskLimit") return "the bound of agents is reached";
    if (reason == "BeginTime") return "requeued; Slurm starts it again soon (BeginTime)";
    if (reason == "PartitionDown" || reason == "PartitionInactive")
        return "partition " + partition + " is down (" + reason + ")";
    if (reason.starts_with("ReqNodeNotAvail"))
        return "its nodes are not available (" + reason + ")";
    if (reason.find("Limit") != std::string::npos || reason.starts_with("QOS") ||
        reason.starts_with("Assoc"))
        return "a limit of your account is reached (" + reason + ")";
    if (reason == "None" || reason.empty()) return "Slurm has not looked at it yet";
    return reason;
}

Result<std::vector<AgentJob>> parse_squeue(const std::string& text) {
    std::vector<AgentJob> jobs;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (trimmed(line).empty()) continue;
        const std::vector<std::string> cells = split_cells(line, 8);
        if (cells.size() != 8)
            return Error{Code::kDataLoss, "squeue printed what is no job: " + line};
        AgentJob job;
        job.id = cells[0];
        job.state = state_of_slurm(cells[1]);
        job.host = cells[3];
        job.agents = std::max(1, leading_int(cells[5]));
        std::tie(job.group, job.study) = parts_of_comment(cells[7]);
        if (job.state == AgentJob::State::kPending)
            job.reason = pending_text(cells[2], cells[4]);
        else if (job.state != AgentJob::State::kRunning)
            job.reason = lower_ascii(cells[1]) + (cells[2] == "None" ? "" : " (" + cells[2] + ")");
        if (!job.group.empty()) jobs.push_back(std::move(job));
    }
    return jobs;
}

bool SlurmNode::is_usable() const {
    constexpr std::array<std::string_view, 8> kAway = {"down",  "drain",   "drained", "fail",
                                                       "inval", "unknown", "future",  "error"};
    std::string_view word = state;
    while (!word.empty() &&
           std::string_view("*~#!%$@^-+").find(word.back()) != std::string_view::npos)
        word.remove_suffix(1);
    return !is_among(kAway, word);
}

int gpus_of_gres(std::string_view gres, std::string_view type) {
    int count = 0;
    while (!gres.empty()) {
        // Commas also stand within the brackets of sockets and cores.
        std::size_t end = 0;
        for (int depth = 0; end < gres.size() && (gres[end] != ',' || depth > 0); ++end)
            depth += gres[end] == '(' ? 1 : gres[end] == ')' ? -1 : 0;
        std::string_view one = gres.substr(0, end);
        gres.remove_prefix(std::min(gres.size(), end + 1));
        one = one.substr(0, one.find('('));
        if (one != "gpu" && !one.starts_with("gpu:")) continue;
        const std::size_t last = one.rfind(':');
        const std::size_t first = one.find(':');
        if (first == std::string_view::npos) {
            ++count;
            continue;
        }
        const std::string_view kind =
            first == last ? std::string_view() : one.substr(first + 1, last - first - 1);
        if (type.empty() || kind == type) count += leading_int(one.substr(last + 1));
    }
    return count;
}

std::vector<SlurmNode> parse_sinfo(const std::string& text) {
    std::vector<SlurmNode> nodes;
    std::set<std::string> seen;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const std::vector<std::string> cells = split_cells(line, 5);
        if (cells.size() != 5 || !seen.insert(cells[4]).second) continue;
        nodes.push_back({.host = cells[0],
                         .cpus = leading_int(cells[1]),
                         .state = cells[2],
                         .gpus = gpus_of_gres(cells[3], {})});
    }
    return nodes;
}

std::optional<SlurmVersion> parse_slurm_version(std::string_view text) {
    const std::size_t at = text.find_first_of("0123456789");
    if (!text.starts_with("slurm") || at == std::string_view::npos) return std::nullopt;
    const std::size_t dot = text.find('.', at);
    if (dot == std::string_view::npos) return std::nullopt;
    return SlurmVersion{leading_int(text.substr(at)), leading_int(text.substr(dot + 1))};
}

std::optional<long> config_number(std::string_view text, std::string_view name) {
    for (std::size_t at = text.find(name); at != std::string_view::npos;
         at = text.find(name, at + 1)) {
        if (at > 0 && text[at - 1] != '\n') continue;
        const std::size_t equals = text.find('=', at);
        if (equals == std::string_view::npos) return std::nullopt;
        return leading_int(trimmed(text.substr(equals + 1, 20)));
    }
    return std::nullopt;
}

std::string slurm_time(std::int64_t duration_ms) {
    constexpr std::int64_t kDay_s = 24 * 3600;
    const std::int64_t seconds = std::max<std::int64_t>(60'000, duration_ms) / 1000;
    char text[64];
    std::snprintf(
        text, sizeof text, "%lld-%02lld:%02lld:%02lld", static_cast<long long>(seconds / kDay_s),
        static_cast<long long>(seconds % kDay_s / 3600),
        static_cast<long long>(seconds % 3600 / 60), static_cast<long long>(seconds % 60));
    return text;
}

}  // namespace tune::launch
