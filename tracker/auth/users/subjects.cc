// The fields are read by the functions that the handlers read them with: a request that says one
// thing twice (two spellings, query and body) touches what the handler will take it to mean, or is
// refused.

#include "tracker/auth/users/subjects.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tracker/api/artifacts/artifact_location.h"
#include "tracker/api/http/fast_parse.h"
#include "tracker/api/http/message.h"
#include "tracker/api/mlflow/registry_serializer.h"
#include "tracker/artifacts/artifact_path.h"
#include "tracker/store/registry/model_source.h"

namespace tune::tracker {
namespace {

using Kind = Touch::Kind;
using Touches = std::vector<Touch>;

using Rule = Touch::Part::Rule;

Touches one(Kind kind, std::string id, Permission least, std::optional<Touch::Part> part = {}) {
    Touches touches;
    touches.push_back({kind, std::move(id), least, part});
    return touches;
}

constexpr Touch::Part kOfRun = {ResourceType::kRun};
constexpr Touch::Part kOfLoggedModel = {ResourceType::kLoggedModel};
constexpr Touch::Part kOfTrace = {ResourceType::kTrace};
constexpr Touch::Part kOfVersion = {ResourceType::kRegisteredModelVersion};

constexpr Touch::Part unless_denied(ResourceType type) {
    return {type, Rule::kVeto};
}
/// A study shows its trials, which are runs.
constexpr Touch::Part kStudyUnlessRunsDenied = unless_denied(ResourceType::kRun);

Touches server() {
    return one(Kind::kServer, {}, Permission::kManage);
}

/// The values of a list whose items may themselves hold several, separated by commas.
void add_each(Touches& touches, Kind kind, const std::vector<std::string>& values, Permission least,
              std::optional<Touch::Part> part = {}) {
    for (std::string_view rest : values) {
        while (!rest.empty()) {
            const std::size_t comma = std::min(rest.find(','), rest.size());
            if (comma > 0)
                touches.push_back({kind, std::string(rest.substr(0, comma)), least, part});
            rest.remove_prefix(std::min(comma + 1, rest.size()));
        }
    }
}

Result<Touches> experiment(const Request& request, Permission least,
                           std::optional<Touch::Part> part = {}) {
    if (const std::string& id = request.parameter("experiment_id"); !id.empty())
        return one(Kind::kExperiment, id, least, part);
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(id, message.experiment_id());
    return one(Kind::kExperiment, std::to_string(id), least, part);
}

/// Deleting and restoring reaches all that lies in it, each kind by its own grant (MLflow's
/// _EXPERIMENT_CASCADE_TIERS).
Result<Touches> whole_experiment(const Request& request, Permission least) {
    TUNE_TRY(touches, experiment(request, least));
    const std::string id = touches.front().id;
    for (const ResourceType type :
         {ResourceType::kRun, ResourceType::kTrace, ResourceType::kLoggedModel,
          ResourceType::kAssessment, ResourceType::kReviewQueue, ResourceType::kScorer,
          ResourceType::kScorerVersion})
        touches.push_back({Kind::kExperiment, id, least, Touch::Part{type}});
    return touches;
}

Result<Touches> experiments(const Request& request, Permission least) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(ids, message.experiment_ids());
    Touches touches;
    for (const ExperimentId id : ids)
        touches.push_back({Kind::kExperiment, std::to_string(id), least});
    return touches;
}

Result<Touches> made_experiment(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(location, message.text("artifact_location"));
    // Whoever chose the folder of another experiment would reach that one's files through it.
    if (!location.empty()) return server();
    return one(Kind::kMade, std::string(kAnyResource), Permission::kManage,
               unless_denied(ResourceType::kExperiment));
}

Result<Touches> made_model(const Request& request) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(name, message.text("name"));
    TUNE_TRY(tags, registry_tags(message));
    return one(
        Kind::kMade, name.empty() ? std::string(kAnyResource) : std::move(name),
        Permission::kManage,
        unless_denied(is_prompt(tags) ? ResourceType::kPrompt : ResourceType::kRegisteredModel));
}

Result<Touches> made_logged_model(const Request& request, Permission least) {
    TUNE_TRY(touches, experiment(request, least, unless_denied(ResourceType::kLoggedModel)));
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(run_id, message.text("source_run_id"));
    if (!run_id.empty())
        touches.push_back({Kind::kRun, std::move(run_id), Permission::kRead, kOfRun});
    return touches;
}

Result<Touches> run(const Request& request, Permission least) {
    // A streamed body says nothing of the run, the query does.
    if (request.method == Method::kPost && request.body.empty())
        if (const auto id = request.query_value("run_uuid"))
            return one(Kind::kRun, std::string(*id), least, kOfRun);
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(id, message.run_id());
    return one(Kind::kRun, std::move(id), least, kOfRun);
}

Result<Touches> runs(const Request& request, Permission least) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(ids, message.texts("run_id"));
    TUNE_TRY(more, message.texts("run_ids"));
    Touches touches;
    add_each(touches, Kind::kRun, ids, least, kOfRun);
    add_each(touches, Kind::kRun, more, least, kOfRun);
    return touches;
}

void add_model(Touches& touches, const std::string& model_id, Permission least) {
    if (model_id.empty()) return;
    const auto is_known = [&](const Touch& touch) {
        return touch.kind == Kind::kLoggedModel && touch.id == model_id;
    };
    if (std::none_of(touches.begin(), touches.end(), is_known))
        touches.push_back({Kind::kLoggedModel, model_id, least, kOfLoggedModel});
}

/// The models that a run is given: it says that it has used them.
Result<Touches> run_and_inputs(const Request& request, Permission least) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(id, message.run_id());
    Touches touches = one(Kind::kRun, std::move(id), least, kOfRun);
    TUNE_TRY(models, message.messages("models"));
    for (const Message& item : models) {
        TUNE_TRY(model_id, item.text("model_id"));
        add_model(touches, model_id, Permission::kRead);
    }
    return touches;
}

Result<Touches> run_and_models(Request& request, Permission least) {
    if (takes_fast_way(request)) {
        if (const auto metric = parse_log_metric_fast(request.body)) {
            Touches touches = one(Kind::kRun, metric->run_id, least, kOfRun);
            add_model(touches, metric->metric.model_id, least);
            return touches;
        }
        if (const auto batch = parse_log_batch_fast(request.body)) {
            Touches touches = one(Kind::kRun, batch->run_id, least, kOfRun);
            for (const Metric& metric : batch->metrics) add_model(touches, metric.model_id, least);
            return touches;
        }
    }
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(id, message.run_id());
    Touches touches = one(Kind::kRun, std::move(id), least, kOfRun);
    TUNE_TRY(model_id, message.text("model_id"));
    add_model(touches, model_id, least);
    for (const char* list : {"metrics", "models"}) {
        TUNE_TRY(items, message.messages(list));
        for (const Message& item : items) {
            TUNE_TRY(named, item.text("model_id"));
            add_model(touches, named, least);
        }
    }
    return touches;
}

Result<Touches> run_or_logged_model(const Request& request, Permission least) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(run_id, message.text("run_id"));
    TUNE_TRY(model_id, message.text("model_id"));
    Touches touches;
    if (!run_id.empty()) touches.push_back({Kind::kRun, std::move(run_id), least, kOfRun});
    add_model(touches, model_id, least);
    if (touches.empty()) return server();
    return touches;
}

Result<Touches> registered_model(const Request& request, Permission least,
                                 std::optional<Touch::Part> part = {}) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(name, message.required_text("name"));
    return one(Kind::kRegisteredModel, std::move(name), least, part);
}

/// With a model go its versions, which have grants of their own.
Result<Touches> whole_model(const Request& request, Permission least) {
    TUNE_TRY(touches, registered_model(request, least));
    std::string name = touches.front().id;
    touches.push_back({Kind::kRegisteredModel, std::move(name), least, kOfVersion});
    return touches;
}

Result<Touches> made_version(const Request& request, Permission least) {
    TUNE_TRY(touches, registered_model(request, least,
                                       unless_denied(ResourceType::kRegisteredModelVersion)));
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(run_id, message.optional_text("run_id"));
    TUNE_TRY(model_id, message.optional_text("model_id"));
    TUNE_TRY(source, message.text("source"));
    const std::optional<ModelUri> uri = parse_model_uri(source);
    // A registered model is itself what bounds its files: of what its version was made, the copy
    // only repeats the ids.
    if (uri && !uri->name.empty()) {
        touches.push_back({Kind::kRegisteredModel, uri->name, Permission::kRead});
        return touches;
    }
    if (run_id) touches.push_back({Kind::kRun, std::move(*run_id), Permission::kRead, kOfRun});
    if (model_id)
        touches.push_back(
            {Kind::kLoggedModel, std::move(*model_id), Permission::kRead, kOfLoggedModel});
    if (uri && !uri->model_id.empty())
        touches.push_back({Kind::kLoggedModel, uri->model_id, Permission::kRead, kOfLoggedModel});
    return touches;
}

/// The kinds that a path below an experiment's folder is of: none for a file of the experiment's
/// own. `is_removal` takes all that lies below it along (MLflow's _artifact_proxy_child_types).
std::vector<Touch::Part> parts_of_path(std::string_view below, bool is_removal) {
    const std::size_t slash = std::min(below.find('/'), below.size());
    const std::string_view first = below.substr(0, slash);
    const std::string_view rest = below.substr(std::min(slash + 1, below.size()));
    if (first.empty())
        return is_removal ? std::vector<Touch::Part>{kOfRun, kOfTrace, kOfLoggedModel}
                          : std::vector<Touch::Part>{};
    if (first == "models") return {kOfLoggedModel};
    if (first == "traces") return {kOfTrace};
    if (rest == "artifacts" || rest.starts_with("artifacts/")) return {kOfRun};
    if (is_removal || is_run_folder(first)) return {kOfRun};
    return {};
}

/// Of the experiment whose folder, named by its number, the path begins with.
Touches folder_of(std::string_view path, Permission least) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    const std::string_view folder = path.substr(0, slash);
    const bool is_number = !folder.empty() && folder.size() < 19 &&
                           folder.find_first_not_of("0123456789") == std::string_view::npos;
    if (!is_number) return server();
    const std::string_view below = path.substr(std::min(slash + 1, path.size()));
    Touches touches;
    for (const Touch::Part& part : parts_of_path(below, least == Permission::kManage))
        touches.push_back({Kind::kExperiment, std::string(folder), least, part});
    if (touches.empty()) touches = one(Kind::kExperiment, std::string(folder), least);
    for (Touch& touch : touches) touch.path = below;
    return touches;
}

Result<Touches> artifact(const Request& request, Permission least) {
    const bool is_in_path = !request.parameters.empty();
    const std::string_view asked = is_in_path ? std::string_view(request.parameter("path"))
                                              : request.query_value("path").value_or("");
    TUNE_TRY(path, normal_artifact_path(asked));
    return folder_of(path, least);
}

/// The body as the study's handler reads it; what is wrong with it, that one says.
Touches made_study(const Request& request, Permission least) {
    const Result<Json> body = parse_json(request.body);
    if (!body || !body->is_object()) return server();
    const auto text = [&body](const char* key) {
        const auto field = body->find(key);
        return field != body->end() && field->is_string() ? field->get<std::string>()
                                                          : std::string();
    };
    const auto replace = body->find("replace");
    const bool replaces = replace != body->end() && replace->is_boolean() && replace->get<bool>();
    const std::string name = body->contains("name") ? text("name") : text("study");
    Touches touches =
        one(Kind::kMadeStudy, name, replaces ? std::max(least, Permission::kManage) : least,
            kStudyUnlessRunsDenied);
    const auto warm = body->find("warm_start");
    if (warm == body->end()) return touches;
    std::string earlier = text("warm_start");
    if (warm->is_object() && warm->contains("from") && (*warm)["from"].is_string())
        earlier = (*warm)["from"].get<std::string>();
    if (!earlier.empty())
        touches.push_back(
            {Kind::kStudy, std::move(earlier), Permission::kRead, kStudyUnlessRunsDenied});
    return touches;
}

Result<Touches> self(const Request& request, bool or_workspace) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(username, message.required_text("username"));
    Touches touches = one(Kind::kSelf, std::move(username), Permission::kManage);
    touches.front().or_workspace = or_workspace;
    return touches;
}

/// Who manages the thing gives rights on it; for all things of a type, who manages the workspace.
Result<Touches> grant(const Request& request, Permission least) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(type, message.text("resource_type"));
    TUNE_TRY(resource_id, message.text("resource_id"));
    if (type.empty()) {
        TUNE_TRY(experiment_id, message.text("experiment_id"));
        TUNE_TRY(name, message.text("name"));
        type = experiment_id.empty() ? "registered_model" : "experiment";
        resource_id = experiment_id.empty() ? name : experiment_id;
    }
    if (resource_id == kAnyResource) return one(Kind::kWorkspace, {}, least);
    if (type == "experiment") return one(Kind::kExperiment, std::move(resource_id), least);
    if (type == "registered_model" || type == "prompt")
        return one(Kind::kGranted, std::move(resource_id), least,
                   Touch::Part{*resource_type_of(type)});
    return one(Kind::kWorkspace, {}, least);
}

/// The lists of all experiments and all studies are everybody's: of their events each reader gets
/// those that are of what may be read (tracker/api/ui/event_routes.cc).
Touches topics(const Request& request, Permission least) {
    Touches named;
    for (const std::string_view list : request.query_values("topics"))
        add_each(named, Kind::kServer, {std::string(list)}, least);
    Touches touches;
    for (const Touch& topic : named) {
        const std::size_t colon = std::min(topic.id.find(':'), topic.id.size());
        const std::string kind = topic.id.substr(0, colon);
        Touch touch{Kind::kServer, topic.id.substr(std::min(colon + 1, topic.id.size())), least};
        if (kind == "experiment") touch.kind = Kind::kExperiment;
        if (kind == "run") {
            touch.kind = Kind::kRun;
            touch.part = kOfRun;
        }
        if (kind == "study") {
            touch.kind = Kind::kStudy;
            touch.part = kStudyUnlessRunsDenied;
        }
        if (topic.id == "experiments" || topic.id == "studies") touch.kind = Kind::kList;
        touch.topic = topic.id;
        touches.push_back(std::move(touch));
    }
    return touches;
}

Result<Touches> read_touches(Request& request, const Needs& needs) {
    const Permission least = needs.least();
    switch (needs.subject()) {
        case Subject::kNothing:
        case Subject::kCut: return Touches();
        case Subject::kServer: return server();
        case Subject::kSelf: return self(request, false);
        case Subject::kSelfOrWorkspace: return self(request, true);
        case Subject::kWorkspace: return one(Kind::kWorkspace, {}, least);
        case Subject::kMadeExperiment: return made_experiment(request);
        case Subject::kMadeModel: return made_model(request);
        case Subject::kMadeRun:
            return experiment(request, least, unless_denied(ResourceType::kRun));
        case Subject::kMadeLoggedModel: return made_logged_model(request, least);
        case Subject::kWholeExperiment: return whole_experiment(request, least);
        case Subject::kRunsOfExperiment: return experiment(request, least, kOfRun);
        case Subject::kExperiment:
        case Subject::kLedExperiment: return experiment(request, least);
        case Subject::kExperimentName: {
            TUNE_TRY(message, Message::read(request));
            TUNE_TRY(name, message.required_text("experiment_name"));
            return one(Kind::kExperimentName, std::move(name), least);
        }
        case Subject::kExperiments: return experiments(request, least);
        case Subject::kRun: return run(request, least);
        case Subject::kRuns: return runs(request, least);
        case Subject::kRunAndInputs: return run_and_inputs(request, least);
        case Subject::kRunAndModels: return run_and_models(request, least);
        case Subject::kRunOrLoggedModel: return run_or_logged_model(request, least);
        case Subject::kLoggedModel:
            return one(Kind::kLoggedModel, request.parameter("model_id"), least, kOfLoggedModel);
        case Subject::kRegisteredModel: return registered_model(request, least);
        case Subject::kWholeModel: return whole_model(request, least);
        case Subject::kModelAlias:
            return registered_model(request, least,
                                    unless_denied(ResourceType::kRegisteredModelVersion));
        case Subject::kModelVersion:
            // Who reads needs no more of the grant on versions than that it denies nothing.
            return registered_model(request, least,
                                    least == Permission::kRead
                                        ? unless_denied(ResourceType::kRegisteredModelVersion)
                                        : kOfVersion);
        case Subject::kMadeVersion: return made_version(request, least);
        case Subject::kArtifact: return artifact(request, least);
        case Subject::kUpload: return one(Kind::kUpload, request.parameter("upload_id"), least);
        case Subject::kStudy:
            return one(Kind::kStudy, request.parameter("name"), least, kStudyUnlessRunsDenied);
        case Subject::kMadeStudy: return made_study(request, least);
        case Subject::kGrant: return grant(request, least);
        case Subject::kTopics: return topics(request, least);
    }
    return server();
}

}  // namespace

std::vector<Touch> touches_of_path(std::string_view path, Permission least) {
    return folder_of(path, least);
}

Result<std::vector<Touch>> touches_of(Request& request, const Needs& needs) {
    TUNE_TRY(touches, read_touches(request, needs));
    if (touches.size() <= kTouchesMax) return touches;
    return Error{Code::kInvalidParameterValue,
                 "one request may name at most " + std::to_string(kTouchesMax) +
                     " runs, models and experiments, not " + std::to_string(touches.size())};
}

}  // namespace tune::tracker
