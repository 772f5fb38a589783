#pragma once
// Time comes in by constructor, so that leases, timeouts and timestamps can be tested without
// waiting.

#include <atomic>
#include <cstdint>

namespace tune {

/// Thread-safe source of time.
class Clock {
public:
    virtual ~Clock() = default;

    /// Wall-clock milliseconds since 1970-01-01 UTC; may jump. For timestamps that users see.
    [[nodiscard]] virtual std::int64_t now_ms() const = 0;

    /// Milliseconds of a clock that never jumps and counts suspend; its origin is arbitrary. For
    /// leases and time-outs.
    [[nodiscard]] virtual std::int64_t monotonic_ms() const = 0;
};

/// The machine's clock.
class SystemClock final : public Clock {
public:
    [[nodiscard]] std::int64_t now_ms() const override;
    [[nodiscard]] std::int64_t monotonic_ms() const override;
};

/// A clock that moves only when told to; for tests.
class ManualClock final : public Clock {
public:
    explicit ManualClock(std::int64_t start_ms) : time_ms_(start_ms) {}
    [[nodiscard]] std::int64_t now_ms() const override { return time_ms_.load(); }
    [[nodiscard]] std::int64_t monotonic_ms() const override { return time_ms_.load(); }
    void advance_ms(std::int64_t by_ms) { time_ms_.fetch_add(by_ms); }

private:
    std::atomic<std::int64_t> time_ms_;
};

}  // namespace tune
