// `tune priority` and `tune quota` against a server.

#include <nlohmann/json.hpp>

#include "base/text/percent.h"
#include "tuner/cli/backend.h"
#include "tuner/cli/options.h"
#include "tuner/cli/scheduling/scheduling_verbs.h"
#include "tuner/cli/terminal/output.h"
#include "tuner/cli/terminal/study_text.h"
#include "tuner/cli/terminal/terminal.h"

namespace tune::cli {
namespace {

constexpr const char* kQuotas = "/api/2.0/tune/quotas";

std::string limit_cell(const Json& user, const char* name) {
    const Json quota = user.value("quota", Json());
    const Json limit = quota.is_object() ? quota.value(name, Json()) : Json();
    return limit.is_null() ? "-" : to_text(limit);
}

std::string quotas_text(const Json& users) {
    if (users.empty()) return "no quotas, and no study is running\n";
    Table table;
    table.column("user");
    for (const char* name : {"share", "places", "at most", "GPUs", "at most", "priority at most"})
        table.column(name, Table::Align::kRight);
    for (const Json& user : users) {
        const Json& held = user["held"];
        const auto percent = static_cast<int>(user["share"].get<double>() * 100 + 0.5);
        table.row({printable(text_of(user, "user")), std::to_string(percent) + " %",
                   to_text(held["slots"]), limit_cell(user, "slots"), number_cell(held["gpus"]),
                   limit_cell(user, "gpus"), limit_cell(user, "priority")});
    }
    return table.text();
}

template <class Options, class Work>
int answer(const Options& options, const Work& work, const std::string& done) {
    const auto backend = find_backend(options.server, options.data);
    if (!backend) return fail(backend.error(), options.json);
    const Result<Json> result = work(**backend);
    if (!result) return fail(result.error(), options.json);
    if (options.json)
        print_json(*result);
    else
        print(done);
    return kExitOk;
}

}  // namespace

int run_priority(const PriorityCommand& options) {
    return answer(
        options,
        [&](Backend& backend) {
            return backend.post(study_path(options.study, "/priority"),
                                {{"priority", options.priority}});
        },
        printable(options.study) + " has the priority " + std::to_string(options.priority) + "\n");
}

int run_quota_ls(const QuotaCommand& options) {
    const auto backend = find_backend(options.server, options.data);
    if (!backend) return fail(backend.error(), options.json);
    const Result<Json> users = (*backend)->get(kQuotas);
    if (!users) return fail(users.error(), options.json);
    if (options.json)
        print_json(*users);
    else
        print(quotas_text((*users)["users"]));
    return kExitOk;
}

int run_quota_set(const QuotaCommand& options) {
    Json body = {{"user", options.user}};
    if (options.slots) body["slots"] = *options.slots;
    if (options.gpus) body["gpus"] = *options.gpus;
    if (options.priority) body["priority"] = *options.priority;
    return answer(
        options, [&](Backend& backend) { return backend.post(kQuotas, body); },
        "the quota of " + printable(options.user) + " is set\n");
}

int run_quota_rm(const QuotaCommand& options) {
    return answer(
        options,
        [&](Backend& backend) {
            return backend.remove(std::string(kQuotas) + "/" + percent_encode(options.user, false));
        },
        "the quota of " + printable(options.user) + " is removed\n");
}

}  // namespace tune::cli
