#include "loader/source/retry.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>
#include <thread>

namespace tune::loader {
namespace {

constexpr double kPauseBase_s = 0.2;
constexpr double kPauseMax_s = 20;
constexpr double kRetryAfterMax_s = 300;

double pause_s(int attempts, double retry_after_s) {
    thread_local std::minstd_rand rng(std::random_device{}());
    const double most = std::min(kPauseMax_s, kPauseBase_s * std::exp2(attempts));
    const double jitter = std::uniform_real_distribution<double>(0, most)(rng);
    // The jitter comes on top, or all whom a server sent away would come back at one moment.
    return retry_after_s > 0 ? std::min(retry_after_s, kRetryAfterMax_s) + jitter / 4 : jitter;
}

/// Whether it was told to stop meanwhile.
bool paused(const SourceOptions& options, double seconds) {
    const std::chrono::milliseconds time(static_cast<std::int64_t>(seconds * 1e3) + 1);
    if (options.stop) return options.stop->wait_for(time);
    std::this_thread::sleep_for(time);
    return false;
}

}  // namespace

Result<void> with_retries(const SourceOptions& options,
                          const std::function<std::optional<AttemptFailure>()>& attempt) {
    const auto start = std::chrono::steady_clock::now();
    for (int attempts = 1;; ++attempts) {
        std::optional<AttemptFailure> failure = attempt();
        if (!failure) return {};
        const bool is_stopped = options.stop && options.stop->is_set();
        if (!is_stopped && failure->may_pass && attempts <= options.download_retry &&
            !paused(options, pause_s(attempts, failure->retry_after_s)))
            continue;
        if (options.stop && options.stop->is_set())
            return Error{Code::kCancelled, "it was cancelled"};
        if (failure->may_pass) {
            const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
            char text[64];
            std::snprintf(text, sizeof text, " (%d attempt%s in %.1f s)", attempts,
                          attempts == 1 ? "" : "s", spent.count());
            failure->error.message += text;
        }
        return std::move(failure->error);
    }
}

}  // namespace tune::loader
