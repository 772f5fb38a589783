// A version is known by its tags: it is of this study and this trial. So whoever was interrupted
// after the version was written, and before the study knew of it, finds it again and makes no
// second one.

#include "tuner/study/registry/registration/registration.h"

#include <algorithm>

#include "tracker/store/permissions/read_permissions.h"
#include "tracker/store/reads/read_snapshot.h"
#include "tracker/store/registry/registry.h"

namespace tune::tuner {
namespace {

constexpr const char* kStudyIdTag = "tune.study_id";
constexpr const char* kTrialTag = "tune.trial";

bool has_tag(const std::vector<tracker::Tag>& tags, const std::string& key,
             const std::string& value) {
    return std::any_of(tags.begin(), tags.end(), [&](const tracker::Tag& tag) {
        return tag.key == key && tag.value == value;
    });
}

/// For filters, which have no other way to write one.
std::string in_double_quotes(const std::string& text) {
    return "\"" + text + "\"";
}

Error may_not(const std::string& owner, const std::string& name) {
    return {Code::kPermissionDenied,
            "user '" + owner + "' may not add a version to the registered model '" + name + "'"};
}

}  // namespace

RegistrationOrder registration_order(const Study& study) {
    const Trial& best = *study.front().best();
    const StudyIdentity& identity = study.identity();
    return {.name = study.config().register_as,
            .study = identity.name,
            .study_id = identity.id,
            .experiment_id = identity.experiment_id,
            .run_id = best.run_id,
            .trial = best.number,
            .owner = identity.owner};
}

Result<std::optional<Registration>> find_registration(const tracker::Store& store,
                                                      const RegistrationOrder& order) {
    tracker::SearchModelVersions query;
    query.filter = "run_id = " + in_double_quotes(order.run_id);
    TUNE_TRY(page, tracker::search_model_versions(store, query));
    for (const tracker::ModelVersion& version : page.items) {
        if (version.name != order.name || !has_tag(version.tags, kStudyIdTag, order.study_id) ||
            !has_tag(version.tags, kTrialTag, std::to_string(order.trial)))
            continue;
        const std::size_t slash = version.source.rfind('/');
        return std::optional(Registration{
            .name = order.name,
            .trial = order.trial,
            .version = version.version,
            .model_id = slash == std::string::npos ? "" : version.source.substr(slash + 1)});
    }
    return std::optional<Registration>();
}

Result<std::string> find_trial_model(const tracker::Store& store, const RegistrationOrder& order) {
    tracker::SearchLoggedModels query;
    query.experiment_ids = {order.experiment_id};
    query.filter = "source_run_id = '" + order.run_id + "'";
    TUNE_TRY(page, store.search_logged_models(query));  // the newest first
    for (const tracker::LoggedModel& model : page.items)
        if (model.status == tracker::LoggedModelStatus::kReady) return model.model_id;
    return Error{Code::kResourceDoesNotExist,
                 "the best trial, " + std::to_string(order.trial) +
                     ", logged no model; tune-trainer logs one with --log-model=best, any program "
                     "with MLflow's log_model, or by leaving one in TUNE_MODEL_DIR"};
}

Result<RegistryRights> registry_rights(const tracker::Store& store, const std::string& name,
                                       const std::string& owner,
                                       const std::optional<tracker::Permission>& by_default) {
    RegistryRights rights;
    const auto model = tracker::get_registered_model(store, name);
    if (!model && model.error().code != Code::kResourceDoesNotExist) return model.error();
    rights.has_model = model.has_value();
    if (!by_default || owner.empty()) return rights;
    TUNE_TRY(user, store.snapshot([&](const tracker::ReadSnapshot& snapshot) {
        return tracker::find_user(snapshot, owner);
    }));
    if (!user) return may_not(owner, name);
    rights.owner_id = user->user_id;
    if (user->is_admin || !rights.has_model) return rights;
    TUNE_TRY(given, store.snapshot([&](const tracker::ReadSnapshot& snapshot) {
        return tracker::granted(snapshot, user->user_id, tracker::ResourceType::kRegisteredModel,
                                name);
    }));
    const bool is_refused = given && *given <= tracker::Permission::kNone;
    const tracker::Permission most = std::max(given.value_or(*by_default), *by_default);
    if (is_refused || most < tracker::Permission::kEdit) return may_not(owner, name);
    return rights;
}

std::vector<tracker::Command> registration_commands(const RegistrationOrder& order,
                                                    const std::string& model_id,
                                                    const RegistryRights& rights) {
    std::vector<tracker::Command> commands;
    if (!rights.has_model)
        commands.emplace_back(tracker::RegistryCommand(
            tracker::CreateRegisteredModel{.name = order.name, .owner_id = rights.owner_id}));
    commands.emplace_back(tracker::RegistryCommand(
        tracker::CreateModelVersion{.name = order.name,
                                    .source = "models:/" + model_id,
                                    .run_id = order.run_id,
                                    .model_id = model_id,
                                    .tags = {{"tune.study", order.study},
                                             {kStudyIdTag, order.study_id},
                                             {kTrialTag, std::to_string(order.trial)}}}));
    return commands;
}

}  // namespace tune::tuner
