// What a request changes is read off it by tracker/auth/users/subjects.h, as for users, and each
// of these things must be the attempt's own. What is not there at all is let through where the
// handler then says so, since ids are random and are not made by those who name them; a path is
// not, for a file can be put where no run ever was.
//
// Which run is beneath which is looked up each time: a tag can change. Which run a logged model
// came from cannot.

#include "tracker/auth/attempt_limits.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tracker/api/artifacts/artifact_location.h"
#include "tracker/api/http/handlers.h"
#include "tracker/api/http/message.h"
#include "tracker/api/mlflow/parent_run.h"
#include "tracker/store/reads/read_alerts.h"
#include "tracker/store/registry/model_source.h"
#include "tracker/store/registry/registry.h"

namespace tune::tracker {
namespace {

/// Runs within runs that are followed; more are nobody's.
constexpr int kParentsMax = 32;

bool is_not_there(const Error& error) {
    return error.code == Code::kResourceDoesNotExist || error.code == Code::kInvalidParameterValue;
}

std::string described(const Touch& touch) {
    switch (touch.kind) {
        case Touch::Kind::kRun: return "run " + touch.id;
        case Touch::Kind::kLoggedModel: return "the logged model " + touch.id;
        case Touch::Kind::kRegisteredModel: return "the registered model '" + touch.id + "'";
        case Touch::Kind::kExperiment:
            return touch.path.empty() ? "experiment " + touch.id
                                      : "the file " + touch.id + "/" + touch.path;
        case Touch::Kind::kUpload: return "the upload " + touch.id;
        case Touch::Kind::kStudy:
        case Touch::Kind::kMadeStudy: return "the study '" + touch.id + "'";
        default: return "what this call changes";
    }
}

Error beyond(const AttemptPrincipal& attempt, const std::string& what) {
    return {Code::kPermissionDenied,
            "Permission denied: the credential of attempt " + std::to_string(attempt.attempt) +
                " of run " + attempt.run_id +
                " writes to this run, to runs beneath it (mlflow.start_run(nested=True)) and to "
                "what they make, and " +
                what +
                " is none of these. A program that does more sends a token of the server, as "
                "MLFLOW_TRACKING_TOKEN"};
}

/// Led to the study's experiment whatever it names (tracker/api/mlflow/experiment_routes.cc), or
/// made anew beside what there is.
bool is_free_to(Subject subject) {
    switch (subject) {
        case Subject::kMadeExperiment:
        case Subject::kLedExperiment:
        case Subject::kExperimentName:
        case Subject::kMadeModel:
        case Subject::kMadeVersion: return true;
        default: return false;
    }
}

}  // namespace

AttemptLimits::AttemptLimits(Store& store,
                             std::function<std::string(const std::string&)> path_of_upload)
    : store_(store), path_of_upload_(std::move(path_of_upload)) {}

std::optional<Result<void>> AttemptLimits::check(Request& request, const Needs& needs,
                                                 bool may_read) const {
    const AttemptPrincipal* const attempt = current_attempt(request.principal);
    const bool changes = needs.is_write() || needs.least() > Permission::kRead;
    if (attempt == nullptr || !changes || is_free_to(needs.subject())) return Result<void>();
    const Result<std::vector<Touch>> touches = touches_of(request, needs);
    if (!touches) return touches.error();
    if (needs.subject() == Subject::kMadeRun || needs.subject() == Subject::kMadeLoggedModel)
        return check_made(*attempt, request, *touches, may_read);
    for (const Touch& touch : *touches) {
        if (touch.least <= Permission::kRead) continue;
        const Found standing = needs.subject() == Subject::kModelVersion
                                   ? of_version(*attempt, request, may_read)
                                   : of_touch(*attempt, touch, may_read);
        if (!standing) return std::nullopt;
        if (!*standing) return standing->error();
        if (**standing == Standing::kOthers) return beyond(*attempt, described(touch));
    }
    return Result<void>();
}

void AttemptLimits::check_later(const std::shared_ptr<Request>& request, const Needs& needs,
                                std::function<void(Result<void>)> done) const {
    const bool posted = store_.post_read([this, request, needs, done] {
        done(check(*request, needs, true).value_or(Result<void>()));
    });
    if (!posted) done(too_busy());
}

/// A run or logged model lies in the study's experiment, beneath the trial's run.
std::optional<Result<void>> AttemptLimits::check_made(const AttemptPrincipal& attempt,
                                                      const Request& request,
                                                      const std::vector<Touch>& touches,
                                                      bool may_read) const {
    std::vector<std::string> parents;
    for (const Touch& touch : touches) {
        if (touch.kind == Touch::Kind::kRun) parents.push_back(touch.id);
        if (touch.kind == Touch::Kind::kExperiment &&
            touch.id != std::to_string(attempt.experiment_id))
            return beyond(attempt, "experiment " + touch.id);
    }
    const Result<Message> message = Message::read(request);
    if (!message) return message.error();
    const Result<std::vector<Tag>> tags = message->tags("tags");
    if (!tags) return tags.error();
    for (const Tag& tag : *tags)
        if (tag.key == kParentRunTag) parents.push_back(tag.value);
    for (const std::string& parent : parents) {
        const Found standing = of_run(attempt, parent, may_read);
        if (!standing) return std::nullopt;
        if (!*standing) return standing->error();
        if (**standing != Standing::kOwn) return beyond(attempt, "run " + parent);
    }
    return Result<void>();
}

AttemptLimits::Found AttemptLimits::of_touch(const AttemptPrincipal& attempt, const Touch& touch,
                                             bool may_read) const {
    switch (touch.kind) {
        case Touch::Kind::kRun: return of_run(attempt, touch.id, may_read);
        case Touch::Kind::kLoggedModel: return of_model(attempt, touch.id, may_read);
        case Touch::Kind::kExperiment: return of_file(attempt, touch, may_read);
        case Touch::Kind::kUpload: break;
        default: return Result<Standing>(Standing::kOthers);
    }
    if (!may_read) return std::nullopt;
    const std::string path = path_of_upload_ ? path_of_upload_(touch.id) : "";
    if (path.empty()) return Result<Standing>(Standing::kMissing);
    for (const Touch& file : touches_of_path(path, touch.least)) {
        Found standing = of_touch(attempt, file, may_read);
        if (!standing || !*standing || **standing != Standing::kOwn) return standing;
    }
    return Result<Standing>(Standing::kOwn);
}

AttemptLimits::Found AttemptLimits::of_run(const AttemptPrincipal& attempt,
                                           const std::string& run_id, bool may_read) const {
    if (run_id == attempt.run_id) return Result<Standing>(Standing::kOwn);
    if (!may_read) return std::nullopt;
    return read_run(attempt, run_id);
}

Result<AttemptLimits::Standing> AttemptLimits::read_run(const AttemptPrincipal& attempt,
                                                        const std::string& run_id) const {
    TUNE_TRY(is_beneath_it, store_.snapshot([&](sqlite::Connection& connection) -> Result<bool> {
        std::string above = run_id;
        for (int depth = 0; depth < kParentsMax; ++depth) {
            TUNE_TRY(parent, find_run_tag(connection, above, kParentRunTag));
            if (!parent) return false;
            if (*parent == attempt.run_id) return true;
            above = std::move(*parent);
        }
        return false;
    }));
    if (is_beneath_it) return Standing::kOwn;
    const Result<RunInfo> info = store_.get_run_info(run_id);
    if (info) return Standing::kOthers;
    if (is_not_there(info.error())) return Standing::kMissing;
    return info.error();
}

AttemptLimits::Found AttemptLimits::of_model(const AttemptPrincipal& attempt,
                                             const std::string& model_id, bool may_read) const {
    const std::uint64_t epoch = store_.permission_epoch();
    std::optional<std::string> source = sources_.find(model_id, epoch);
    if (!source) {
        if (!may_read) return std::nullopt;
        Result<LoggedModel> model = store_.get_logged_model(model_id);
        if (!model && is_not_there(model.error())) return Result<Standing>(Standing::kMissing);
        if (!model) return Result<Standing>(model.error());
        source = std::move(model->source_run_id);
        sources_.put(model_id, *source, epoch);
    }
    if (source->empty()) return Result<Standing>(Standing::kOthers);
    const Found standing = of_run(attempt, *source, may_read);
    if (!standing || !*standing) return standing;
    return Result<Standing>(**standing == Standing::kOwn ? Standing::kOwn : Standing::kOthers);
}

AttemptLimits::Found AttemptLimits::of_file(const AttemptPrincipal& attempt, const Touch& touch,
                                            bool may_read) const {
    const std::string_view path = touch.path;
    const std::size_t slash = std::min(path.find('/'), path.size());
    const std::string folder(path.substr(0, slash));
    const std::string_view rest = path.substr(std::min(slash + 1, path.size()));
    const std::string within(rest.substr(0, rest.find('/')));
    const bool is_model = folder == "models" && !within.empty();
    if (touch.id != std::to_string(attempt.experiment_id) || (!is_model && !is_run_folder(folder)))
        return Result<Standing>(Standing::kOthers);
    const Found standing =
        is_model ? of_model(attempt, within, may_read) : of_run(attempt, folder, may_read);
    if (!standing || !*standing) return standing;
    return Result<Standing>(**standing == Standing::kOwn ? Standing::kOwn : Standing::kOthers);
}

AttemptLimits::Found AttemptLimits::of_version(const AttemptPrincipal& attempt,
                                               const Request& request, bool may_read) const {
    if (!may_read) return std::nullopt;
    const Result<Message> message = Message::read(request);
    if (!message) return Result<Standing>(message.error());
    const Result<std::string> name = message->required_text("name");
    const Result<std::string> number = message->required_text("version");
    if (!name || !number) return Result<Standing>(Standing::kMissing);
    const Result<ModelVersion> version = get_model_version(store_, *name, *number);
    if (!version && is_not_there(version.error())) return Result<Standing>(Standing::kMissing);
    if (!version) return Result<Standing>(version.error());
    // A stage that is taken over is taken away from others.
    const Result<std::optional<bool>> archives = message->boolean("archive_existing_versions");
    if (!archives) return Result<Standing>(archives.error());
    if (archives->value_or(false)) return Result<Standing>(Standing::kOthers);
    if (version->run_id && !version->run_id->empty())
        return of_run(attempt, *version->run_id, may_read);
    const std::optional<ModelUri> uri = parse_model_uri(version->source);
    if (!uri || uri->model_id.empty()) return Result<Standing>(Standing::kOthers);
    return of_model(attempt, uri->model_id, may_read);
}

}  // namespace tune::tracker
