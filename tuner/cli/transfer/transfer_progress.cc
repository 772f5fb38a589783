#include "tuner/cli/transfer/transfer_progress.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/clock.h"
#include "base/text/counted.h"
#include "tuner/cli/terminal/terminal.h"

namespace tune::cli {
namespace {

constexpr std::int64_t kRedrawEvery_ms = 100;
constexpr std::int64_t kLineEvery_ms = 5'000;

}  // namespace

std::string bytes_text(std::uint64_t bytes) {
    constexpr std::array kUnits = {"B", "kB", "MB", "GB", "TB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= 1000 && unit + 1 < kUnits.size()) {
        value /= 1000;
        ++unit;
    }
    std::array<char, 32> text;
    std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
    return text.data();
}

TransferBar::TransferBar(std::string moving, bool live, bool quiet)
    : moving_(std::move(moving)),
      live_(live),
      quiet_(quiet),
      started_ms_(SystemClock().monotonic_ms()) {}

std::string TransferBar::text_of(const tracker::TransferProgress& progress) const {
    const bool is_moving = progress.phase == tracker::TransferProgress::Phase::kMoving;
    std::string text = is_moving ? moving_ : "verifying";
    if (live_ && progress.runs_total > 0)
        text += " " + progress_bar(static_cast<double>(progress.runs_done) /
                                   static_cast<double>(progress.runs_total));
    text += " " + std::to_string(progress.runs_done) + "/" + std::to_string(progress.runs_total) +
            (progress.runs_total == 1 ? " run  " : " runs  ") + counted(progress.points, "point");
    if (progress.files > 0)
        text +=
            "  " + counted(progress.files, "artifact") + " (" + bytes_text(progress.bytes) + ")";
    return text + "  " + span_text(SystemClock().monotonic_ms() - started_ms_);
}

void TransferBar::show(const tracker::TransferProgress& progress) {
    if (quiet_) return;
    const std::int64_t now_ms = SystemClock().monotonic_ms();
    if (now_ms - last_ms_ < (live_ ? kRedrawEvery_ms : kLineEvery_ms)) return;
    last_ms_ = now_ms;
    const std::string text = text_of(progress);
    if (live_)
        std::fprintf(stderr, "\r\033[K%s", clipped(text, terminal_columns() - 1).c_str());
    else
        std::fprintf(stderr, "%s\n", text.c_str());
    std::fflush(stderr);
    shown_ = true;
}

void TransferBar::clear() {
    if (live_ && shown_) std::fputs("\r\033[K", stderr);
    shown_ = false;
}

}  // namespace tune::cli
