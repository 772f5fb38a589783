#include "tuner/cli/terminal/interrupts.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

namespace tune::cli {
namespace {

constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};
// A signal is put as its own number, which is none of these.
constexpr char kHangupByte = 'h';
constexpr char kNewsByte = 'n';

/// A handler may do nothing but write to a pipe, and can only know it by a global.
int g_pipe[2] = {-1, -1};

void put(char byte) {
    [[maybe_unused]] const ssize_t written = write(g_pipe[1], &byte, 1);
}

void on_signal(int number) {
    const int kept = errno;
    put(static_cast<char>(number));
    errno = kept;
}

void on_hangup(int) {
    const int kept = errno;
    put(kHangupByte);
    errno = kept;
}

}  // namespace

Interrupts::Interrupts(Hangup hangup) {
    if (pipe2(g_pipe, O_CLOEXEC | O_NONBLOCK) != 0) return;
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    for (const int number : kSignals) sigaction(number, &action, nullptr);
    if (hangup == Hangup::kEnds) return;
    action.sa_handler = on_hangup;
    sigaction(SIGHUP, &action, nullptr);
}

void outlive_log_readers() {
    std::signal(SIGPIPE, SIG_IGN);
}

Interrupts::~Interrupts() {
    for (const int number : kSignals) std::signal(number, SIG_DFL);
    for (int& end : g_pipe) {
        if (end >= 0) close(end);
        end = -1;
    }
}

Interrupts::Event Interrupts::wait(int timeout_ms) {
    bool has_news = false;
    pollfd ready{g_pipe[0], POLLIN, 0};
    if (signals_.empty() && poll(&ready, 1, timeout_ms) > 0) {
        std::array<char, 256> bytes;
        const ssize_t count = read(g_pipe[0], bytes.data(), bytes.size());
        for (ssize_t i = 0; i < count; ++i) {
            switch (const char byte = bytes[static_cast<std::size_t>(i)]) {
                case kHangupByte: has_hangup_ = true; break;
                case kNewsByte: has_news = true; break;
                default: signals_.push_back(byte);
            }
        }
    }
    if (!signals_.empty()) {
        signal_ = signals_.front();
        signals_.pop_front();
        return Event::kSignal;
    }
    if (std::exchange(has_hangup_, false)) return Event::kHangup;
    return has_news ? Event::kNews : Event::kTimeout;
}

void Interrupts::wake() {
    put(kNewsByte);
}

}  // namespace tune::cli
