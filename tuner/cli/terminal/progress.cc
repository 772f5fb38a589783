// The status is a block of known height below the scrolled lines: it is cleared by moving the
// cursor up that many lines, and every line is cut to the terminal's width, since a wrapped line
// would make the count wrong. Without a terminal only the lines of ended trials are printed.

#include "tuner/cli/terminal/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/clock.h"
#include "tuner/cli/terminal/study_text.h"
#include "tuner/cli/terminal/terminal.h"

namespace tune::cli {
namespace {

constexpr std::size_t kRunningShownMax = 8;
constexpr std::size_t kSparkColumns = 24;

double value_at(const Json& point) {
    const Json& value = point.at(1);
    return value.is_number() ? value.get<double>() : std::nan("");
}

std::string running_line(const Json& trial, std::size_t columns) {
    std::vector<double> values;
    std::string last;
    const auto points = trial.find("intermediate");
    if (points != trial.end() && points->is_array() && !points->empty()) {
        for (const Json& point : *points) values.push_back(value_at(point));
        last = number_cell(points->back().at(1)) + " at step " + to_text(points->back().at(0));
    }
    std::string head = "  #" + std::to_string(trial.value("number", 0));
    head.resize(std::max<std::size_t>(head.size() + 1, 8), ' ');
    return clipped(head + sparkline(values, kSparkColumns) +
                       (last.empty() ? "running" : " " + last) + "  " +
                       params_text(trial.value("params", Json::object())),
                   columns);
}

}  // namespace

Progress::Progress(std::string page, bool live)
    : page_(std::move(page)), live_(live), started_ms_(SystemClock().monotonic_ms()) {}

Progress::~Progress() {
    clear();
}

void Progress::print(const std::string& line) {
    clear();
    std::fprintf(stderr, "%s\n", line.c_str());
    if (live_) std::fprintf(stderr, "%s", last_status_.c_str());
    lines_shown_ = static_cast<int>(std::count(last_status_.begin(), last_status_.end(), '\n'));
    if (!live_) lines_shown_ = 0;
    std::fflush(stderr);
}

std::string Progress::status_of(const Json& study, const Json& running) const {
    const std::int64_t elapsed_ms = SystemClock().monotonic_ms() - started_ms_;
    const std::int64_t ended = ended_count(study);
    const Json budget = study.value("budget", Json::object());
    std::string text = "  ";
    if (budget.contains("trials") && budget["trials"].is_number()) {
        const auto total = budget["trials"].get<double>();
        text += progress_bar(total > 0 ? static_cast<double>(ended) / total : 0) + " ";
    }
    text += trials_text(study);
    const Json counts = study.value("counts", Json::object());
    for (const char* state : {"running", "complete", "pruned", "failed"})
        if (const auto count = counts.value(state, std::int64_t{0}); count > 0)
            text += "  " + std::to_string(count) + " " + state;
    if (const Json best = study.value("best", Json()); best.is_object())
        text += "  best " + number_cell(best["value"]) + " (#" +
                std::to_string(best.value("number", 0)) + ")";
    if (const Json front = study.value("best_trials", Json()); !front.empty())
        text += "  front of " + std::to_string(front.size());
    const auto [columns, rows] = terminal_size(STDERR_FILENO);
    text = clipped(text + "  " + span_text(elapsed_ms), columns) + "\n";
    // The line above them, the page's and the cursor's must fit too.
    const std::size_t around = note_.empty() ? 3 : 4;
    const std::size_t shown_max = std::min(kRunningShownMax, rows > around ? rows - around : 0);
    std::size_t shown = 0;
    for (const Json& trial : running)
        if (++shown <= shown_max) text += running_line(trial, columns) + "\n";
    if (!note_.empty())
        text += "  " + clipped(note_.substr(0, note_.find('\n')), columns - 2) + "\n";
    return text + "  " + clipped(page_, columns - 2) + "\n";
}

void Progress::show(const Json& study, const Json& running) {
    if (!live_) return;
    clear();
    last_status_ = status_of(study, running);
    std::fprintf(stderr, "%s", last_status_.c_str());
    std::fflush(stderr);
    lines_shown_ = static_cast<int>(std::count(last_status_.begin(), last_status_.end(), '\n'));
}

void Progress::clear() {
    if (!live_ || lines_shown_ == 0) return;
    std::fprintf(stderr, "\033[%dA\033[J", lines_shown_);
    std::fflush(stderr);
    lines_shown_ = 0;
}

}  // namespace tune::cli
