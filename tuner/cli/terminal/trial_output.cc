#include "tuner/cli/terminal/trial_output.h"

#include <algorithm>

#include "base/text/percent.h"
#include "tracker/client/client.h"
#include "tracker/client/mlflow_environment.h"
#include "tuner/cli/terminal/terminal.h"

namespace tune::cli {
namespace {

/// Of a log; lines are seldom longer than a few hundred bytes.
constexpr std::size_t kTailBytes = 64u << 10;

}  // namespace

std::string last_lines(std::string_view text, std::size_t lines_max) {
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
    std::size_t begin = text.size();
    for (std::size_t lines = 0; begin > 0; --begin)
        if (text[begin - 1] == '\n' && ++lines == lines_max) break;
    text.remove_prefix(begin);
    std::string out;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        out += "  " + printable(std::string(text.substr(0, end))) + "\n";
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return out;
}

std::string last_output(const std::string& url, const std::string& run_id, std::size_t lines_max) {
    const auto client = tracker::create_client({.url = url, .retries = 1});
    if (!client) return {};
    for (const char* name : {"stderr.log", "stdout.log"}) {
        std::string tail;
        const auto keep = [&tail](std::string_view bytes) -> Result<void> {
            tail += bytes;
            if (tail.size() > 2 * kTailBytes) tail.erase(0, tail.size() - kTailBytes);
            return {};
        };
        const Result<void> read =
            (*client)->get_file("/get-artifact?run_id=" + percent_encode(run_id, false) +
                                    "&path=logs/" + std::string(name),
                                keep);
        if (!read) continue;
        if (std::string lines = last_lines(tail, lines_max); !lines.empty()) return lines;
    }
    return {};
}

}  // namespace tune::cli
