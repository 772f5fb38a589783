#include "tuner/study/registry/scheduling/quotas.h"

#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "base/log.h"
#include "base/text/number_text.h"
#include "tuner/config/study_config.h"

namespace tune::tuner {
namespace {

std::string gpus_text(std::int64_t micros) {
    if (micros % kGpuMicros == 0) return std::to_string(micros / kGpuMicros);
    return number_text(static_cast<double>(micros) / static_cast<double>(kGpuMicros));
}

/// "user 'ann' holds 6 of the 8 GPUs that the quota allows, and a trial takes 4".
std::string sentence(const std::string& user, const std::string& held, const std::string& most,
                     const std::string& noun, const std::string& more) {
    return "user '" + user + "' holds " + held + " of the " + most + " " + noun +
           " that the quota allows, and a trial takes " + more;
}

}  // namespace

Result<void> check_quota(const Quota& quota) {
    const auto refuse = [](const std::string& message) {
        return Error{Code::kInvalidParameterValue, message};
    };
    if (quota.user.empty() || quota.user.size() > kKeyCharsMax)
        return refuse("field 'user' must be the name of a user, or '*' for all others");
    if (quota.slots && *quota.slots < 0)
        return refuse("field 'slots' must be 0 or more, or null for no limit");
    if (quota.gpus && (*quota.gpus < 0 || *quota.gpus > kQuotaGpusMax))
        return refuse("field 'gpus' must be 0 or more, or null for no limit");
    if (quota.priority && (*quota.priority < -kPriorityMax || *quota.priority > kPriorityMax))
        return refuse("field 'priority' must lie in -1000..1000, or be null for no limit");
    return {};
}

const Quota& Quotas::of(const std::string& user) const {
    static const Quota kNone;
    if (quotas_.empty()) return kNone;
    auto found = quotas_.find(user);
    if (found == quotas_.end()) found = quotas_.find(kEverybody);
    return found == quotas_.end() ? kNone : found->second;
}

std::vector<Quota> Quotas::all() const {
    std::vector<Quota> list;
    for (const auto& [user, quota] : quotas_) list.push_back(quota);
    return list;
}

void Quotas::load(const tracker::Document& document) {
    const Result<Json> json = parse_json(document.json_text);
    Quota quota{.user = document.key};
    const auto read = [&](const char* name, auto& field) {
        if (json->contains(name) && (*json)[name].is_number_integer())
            field =
                (*json)[name].template get<typename std::decay_t<decltype(field)>::value_type>();
    };
    if (!json || !json->is_object())
        return log_error("the quota of user '" + document.key +
                         "' cannot be read and does not count; set it again");
    read("slots", quota.slots);
    read("gpus", quota.gpus);
    read("priority", quota.priority);
    set(quota);
}

tracker::Command put_quota_command(const Quota& quota) {
    Json json = Json::object();
    if (quota.slots) json["slots"] = *quota.slots;
    if (quota.gpus) json["gpus"] = *quota.gpus;
    if (quota.priority) json["priority"] = *quota.priority;
    return tracker::PutDocument{kQuotaCollection, quota.user, to_text(json)};
}

std::string quota_obstacle(const Quota& quota, const std::string& user, const Usage& held,
                           const Usage& more) {
    if (quota.gpus && more.gpu_micros > 0 &&
        held.gpu_micros + more.gpu_micros > *quota.gpus * kGpuMicros)
        return sentence(user, gpus_text(held.gpu_micros), std::to_string(*quota.gpus), "GPUs",
                        gpus_text(more.gpu_micros));
    if (quota.slots && held.slots + more.slots > *quota.slots)
        return sentence(user, std::to_string(held.slots), std::to_string(*quota.slots), "places",
                        std::to_string(more.slots));
    return {};
}

}  // namespace tune::tuner
