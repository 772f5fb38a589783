#pragma once
// The commands about whose trials come first: `tune priority` and `tune quota`.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace tune::cli {

struct PriorityCommand {
    std::optional<std::string> server = {};
    std::optional<std::string> data = {};
    std::string study = {};
    int priority = 0;
    bool json = false;
};

struct QuotaCommand {
    std::optional<std::string> server = {};
    std::optional<std::string> data = {};
    std::string user = {};  ///< "*": whoever has no quota of his own
    std::optional<std::int64_t> slots = {};
    std::optional<std::int64_t> gpus = {};
    std::optional<int> priority = {};
    bool json = false;
};

[[nodiscard]] int run_priority(const PriorityCommand& options);
[[nodiscard]] int run_quota_ls(const QuotaCommand& options);
[[nodiscard]] int run_quota_set(const QuotaCommand& options);
[[nodiscard]] int run_quota_rm(const QuotaCommand& options);

/// What the parser fills.
struct SchedulingArguments {
    PriorityCommand priority = {};
    QuotaCommand quota = {};
};

/// Adds priority and quota. Once one is parsed, `verb` runs it; both references are kept.
void add_scheduling_verbs(CLI::App& app, SchedulingArguments& arguments,
                          std::function<int()>& verb);

}  // namespace tune::cli
