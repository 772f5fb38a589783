#pragma once

namespace tune::worker {

/// Delays of repeated tries: 50 ms, doubled to 2 s, each with +-20 % of jitter, so that a hundred
/// agents do not return in step after a restart of the server.
class Backoff {
public:
    [[nodiscard]] int next_ms();
    void reset() { delay_ms_ = kFirst_ms; }

private:
    static constexpr int kFirst_ms = 50;
    static constexpr int kMax_ms = 2'000;
    int delay_ms_ = kFirst_ms;
};

}  // namespace tune::worker
