// The queue as text, for `tune top` and `tune show`: one line per agent with what of it is taken,
// of how much and by whom, and the reason why a study waits. Texts from elsewhere are made
// printable before they reach the terminal.

#include "tuner/cli/terminal/queue_text.h"

#include <nlohmann/json.hpp>

#include "base/text/counted.h"
#include "tuner/cli/terminal/study_text.h"
#include "tuner/cli/terminal/terminal.h"
#include "tuner/options/bytes.h"

namespace tune::cli {
namespace {

std::int64_t number(const Json& object, const char* name) {
    return object.value(name, std::int64_t{0});
}

/// "3/8": taken of all.
std::string taken_cell(const Json& agent, const char* all, const char* left) {
    const std::int64_t of = number(agent, all);
    return of == 0 ? "-" : std::to_string(of - number(agent, left)) + "/" + std::to_string(of);
}

std::string memory_cell(std::int64_t all, std::int64_t left) {
    if (all == 0) return "-";
    return tuner::rounded_bytes_text(all - left) + "/" + tuner::rounded_bytes_text(all);
}

/// "2/4 GPUs, 35 GiB/160 GiB": those that trials have, and the bytes that were given.
std::string devices_cell(const Json& agent) {
    const Json& devices = agent["devices"];
    if (devices.empty()) return "-";
    std::int64_t used = 0;
    std::int64_t bytes = 0;
    std::int64_t left = 0;
    for (const Json& device : devices) {
        used += number(device, "trials") > 0 ? 1 : 0;
        bytes += number(device, "bytes");
        left += number(device, "free_bytes");
    }
    std::string text =
        std::to_string(used) + "/" + counted(static_cast<std::int64_t>(devices.size()), "GPU");
    if (bytes > 0) text += ", " + memory_cell(bytes, left);
    return text;
}

/// "digits #3, #7; wide #0 (2 of 4)".
std::string leases_cell(const Json& agent) {
    std::string text;
    std::string study;
    for (const Json& lease : agent["leases"]) {
        const std::string name = printable(text_of(lease, "study"));
        const bool is_same = name == study;
        text += text.empty() ? "" : is_same ? ", " : "; ";
        if (!is_same) text += clipped(name, 24) + " ";
        study = name;
        text += "#" + std::to_string(number(lease, "number"));
        if (number(lease, "nodes") > 1)
            text += " (" + std::to_string(number(lease, "node") + 1) + " of " +
                    std::to_string(number(lease, "nodes")) + ")";
    }
    if (text.empty()) {
        const std::string kept = text_of(agent, "held_for");
        text = kept.empty() ? "idle" : "kept for " + clipped(printable(kept), 24);
    }
    return text;
}

/// "box does not use GPU-1: the GPU is lost", a line each.
std::string excluded_lines(const Json& agents, std::size_t lines_max) {
    std::string text;
    std::size_t lines = 0;
    for (const Json& agent : agents)
        for (const Json& reason : agent.value("excluded", Json::array()))
            if (reason.is_string() && lines++ < lines_max)
                text += clipped(printable(text_of(agent, "host")), 24) + " does not use " +
                        clipped(printable(reason.get<std::string>()), 200) + "\n";
    return text;
}

}  // namespace

std::string agents_table(const Json& queue, std::size_t rows_max) {
    const Json agents = queue.value("agents", Json::array());
    if (agents.empty()) return {};
    Table table;
    table.column("agent");
    for (const char* name : {"places", "cores", "memory"}) table.column(name, Table::Align::kRight);
    for (const char* name : {"devices", "labels", "runs"}) table.column(name);
    std::size_t rows = 0;
    for (const Json& agent : agents) {
        if (++rows > rows_max) break;
        std::string labels;
        for (const Json& label : agent["labels"])
            labels += (labels.empty() ? "" : " ") + label.get<std::string>();
        table.row({clipped(printable(text_of(agent, "host")), 24),
                   taken_cell(agent, "slots", "free_slots"), taken_cell(agent, "cpus", "free_cpus"),
                   memory_cell(number(agent, "memory_bytes"), number(agent, "free_memory_bytes")),
                   devices_cell(agent), clipped(printable(labels), 30),
                   clipped(leases_cell(agent), 60)});
    }
    const std::size_t left_out = agents.size() - std::min(rows_max, agents.size()) +
                                 static_cast<std::size_t>(number(queue, "agents_left_out"));
    std::string text = table.text();
    if (left_out > 0)
        text += "and " + counted(static_cast<std::int64_t>(left_out), "more agent") + "\n";
    return text + excluded_lines(agents, rows_max);
}

std::string why_waiting(const Json& queue, const std::string& study) {
    for (const Json& waiting : queue.value("studies", Json::array())) {
        if (text_of(waiting, "study") != study) continue;
        const bool has_all = number(waiting, "queued") == 0 && number(waiting, "running") > 0;
        return has_all ? std::string() : text_of(waiting, "waits_for");
    }
    return {};
}

}  // namespace tune::cli
