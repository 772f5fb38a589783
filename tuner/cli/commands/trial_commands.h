#pragma once
// Trials by hand: enqueue, rerun, profile, ask, tell. What the routes of the same names do, for
// people and shell scripts.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tune::cli {

struct EnqueueCommand {
    std::optional<std::string> server = {};
    std::optional<std::string> data = {};
    std::string study = {};
    std::vector<std::string> values = {};  ///< NAME=VALUE
    bool json = false;
};

struct RerunCommand {
    std::optional<std::string> server = {};
    std::optional<std::string> data = {};
    std::string study = {};
    std::int64_t trial = 0;
    bool json = false;
};

struct ProfileCommand {
    std::optional<std::string> server = {};
    std::optional<std::string> data = {};
    std::string study = {};
    std::int64_t trial = 0;
    std::int64_t steps = 5;
    bool json = false;
};

struct AskCommand {
    std::optional<std::string> server = {};
    std::optional<std::string> data = {};
    std::string study = {};
    int count = 1;
    std::optional<std::string> lease = {};  ///< a duration
    bool json = false;
};

struct TellCommand {
    std::optional<std::string> server = {};
    std::optional<std::string> data = {};
    std::string study = {};
    std::int64_t trial = 0;
    std::vector<std::string> values = {};  ///< one an objective; none: what was reported counts
    std::vector<std::string> constraints = {};  ///< NAME=VALUE
    std::string state = {};                     ///< complete, pruned, failed or cancelled
    std::string reason = {};
    int attempt = 0;  ///< 0: the one that runs
    bool json = false;
};

[[nodiscard]] int run_enqueue(const EnqueueCommand& options);
[[nodiscard]] int run_rerun(const RerunCommand& options);
[[nodiscard]] int run_profile(const ProfileCommand& options);
/// Failed when no trial can be had; says why.
[[nodiscard]] int run_ask(const AskCommand& options);
[[nodiscard]] int run_tell(const TellCommand& options);

}  // namespace tune::cli
