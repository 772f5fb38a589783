#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace tune::loader {

/// A line on stderr for work that takes longer than a second: rewritten in place on a terminal, one
/// line every ten seconds elsewhere.
class Progress {
public:
    Progress();
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// Whether it is time for a line; cheap enough to ask every few hundred rows.
    [[nodiscard]] bool is_due();
    void show(std::string_view text);

private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point next_;
    bool is_terminal_;
    bool has_shown_ = false;
};

/// 1234567 as "1,234,567".
[[nodiscard]] std::string grouped(std::int64_t number);
/// The same with what is counted: "1 shard", "1,234 shards".
[[nodiscard]] std::string grouped(std::int64_t number, std::string_view one);
/// Bytes as "1.2 MB" (powers of 1000).
[[nodiscard]] std::string readable_bytes(std::uint64_t bytes);
/// 0.25 as "[#####...............]  25 %".
[[nodiscard]] std::string progress_bar(double fraction);
/// 0.25 as "25 %".
[[nodiscard]] std::string percent(double fraction);

}  // namespace tune::loader
