// The parser's side of `tune priority` and `tune quota`.

#include "tuner/cli/scheduling/scheduling_verbs.h"

#include <CLI/CLI.hpp>

#include "tuner/cli/source_flags.h"
#include "tuner/config/study_config.h"
#include "tuner/study/registry/scheduling/quotas.h"

namespace tune::cli {
namespace {

constexpr const char* kQuotaExamples =
    "Examples:\n"
    "  tune quota set ann --gpus 16\n"
    "  tune quota set '*' --gpus 8 --priority 0    everybody who has no quota of his own\n";

void add_priority(CLI::App& app, PriorityCommand& priority, std::function<int()>& chosen) {
    CLI::App& verb = *app.add_subcommand(
        "priority", "give a study another priority: higher ones come first, also while it runs");
    verb.add_option("study", priority.study, "name of the study")->required();
    verb.add_option("priority", priority.priority, "0 is the default")
        ->required()
        ->check(within(-tuner::kPriorityMax, tuner::kPriorityMax));
    add_source(verb, priority);
    verb.callback([&] { chosen = [&priority] { return run_priority(priority); }; });
}

void add_quota(CLI::App& app, QuotaCommand& quota, std::function<int()>& chosen) {
    CLI::App& group =
        *app.add_subcommand("quota", "set how much users may hold at most (administrators)");
    group.require_subcommand(1);
    const auto add = [&](const char* name, const char* summary,
                         int (*call)(const QuotaCommand&)) -> CLI::App& {
        CLI::App& verb = *group.add_subcommand(name, summary);
        add_source(verb, quota);
        verb.callback([&quota, &chosen, call] { chosen = [&quota, call] { return call(quota); }; });
        return verb;
    };
    add("ls", "list users, what they hold and what they may hold", run_quota_ls);
    CLI::App& set =
        add("set", "set all limits of a user; what is left out has none", run_quota_set);
    set.footer(kQuotaExamples);
    set.add_option("user", quota.user, "name of the user, or '*' for all who have no quota")
        ->required();
    set.add_option("--slots", quota.slots, "places on agents at a time")
        ->check(CLI::NonNegativeNumber);
    set.add_option("--gpus", quota.gpus, "GPUs at a time")
        ->check(within(0, static_cast<int>(tuner::kQuotaGpusMax)));
    set.add_option("--priority", quota.priority, "the highest priority of the user's studies")
        ->check(within(-tuner::kPriorityMax, tuner::kPriorityMax));
    add("rm", "remove a user's quota", run_quota_rm)
        .add_option("user", quota.user, "name of the user, or '*'")
        ->required();
}

}  // namespace

void add_scheduling_verbs(CLI::App& app, SchedulingArguments& arguments,
                          std::function<int()>& verb) {
    add_priority(app, arguments.priority, verb);
    add_quota(app, arguments.quota, verb);
}

}  // namespace tune::cli
