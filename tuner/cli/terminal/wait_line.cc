#include "tuner/cli/terminal/wait_line.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <utility>

#include "base/clock.h"
#include "tuner/cli/terminal/terminal.h"

namespace tune::cli {
namespace {

constexpr std::chrono::milliseconds kPatience(1000);
constexpr std::chrono::milliseconds kRedraw(200);

}  // namespace

WaitLine::WaitLine(std::string what)
    : what_(std::move(what)), started_ms_(SystemClock().monotonic_ms()) {
    if (is_terminal(STDERR_FILENO)) thread_ = std::thread([this] { run(); });
}

WaitLine::~WaitLine() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        is_over_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
}

void WaitLine::say(std::string what) {
    const std::lock_guard<std::mutex> lock(mutex_);
    what_ = std::move(what);
    total_ = 0;
}

void WaitLine::at(std::size_t done, std::size_t total) {
    const std::lock_guard<std::mutex> lock(mutex_);
    done_ = done;
    total_ = total;
}

std::string WaitLine::text() const {
    std::string text = what_;
    if (total_ > 0) text += " " + std::to_string(done_) + "/" + std::to_string(total_);
    return text + "  " + span_text(SystemClock().monotonic_ms() - started_ms_);
}

void WaitLine::run() {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto is_over = [this] { return is_over_; };
    if (wake_.wait_for(lock, kPatience, is_over)) return;
    do {
        std::fprintf(stderr, "\r\033[K%s", clipped(text(), terminal_columns() - 1).c_str());
        std::fflush(stderr);
    } while (!wake_.wait_for(lock, kRedraw, is_over));
    std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
}

}  // namespace tune::cli
