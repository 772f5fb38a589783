// The fields are read by the functions that the handlers read them with: a request that says one
// thing twice (two spellings, query and body) touches what the handler will take it to mean, or is
// refused.

#include "tracker/auth/users/subjects.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tracker/api/http/fast_parse.h"
#include "tracker/api/http/message.h"
#include "tracker/artifacts/artifact_path.h"
#include "tracker/store/registry/model_source.h"

namespace tune::tracker {
namespace {

using Kind = Touch::Kind;
using Touches = std::vector<Touch>;

Touches one(Kind kind, std::string id, Permission least) {
    Touches touches;
    touches.push_back({kind, std::move(id), least});
    return touches;
}

Touches server() {
    return one(Kind::kServer, {}, Permission::kManage);
}

/// The values of a list whose items may themselves hold several, separated by commas.
void add_each(Touches& touches, Kind kind, const std::vector<std::string>& values,
              Permission least) {
    for (std::string_view rest : values) {
        while (!rest.empty()) {
            const std::size_t comma = std::min(rest.find(','), rest.size());
            if (comma > 0) touches.push_back({kind, std::string(rest.substr(0, comma)), least});
            rest.remove_prefix(std::min(comma + 1, rest.size()));
        }
    }
}

Result<Touches> experiment(const Request& request, Permission least) {
    if (const std::string& id = request.parameter("experiment_id"); !id.empty())
        return one(Kind::kExperiment, id, least);
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(id, message.experiment_id());
    return one(Kind::kExperiment, std::to_string(id), least);
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
    return one(Kind::kMade, {}, Permission::kManage);
}

Result<Touches> run(const Request& request, Permission least) {
    // A streamed body says nothing of the run, the query does.
    if (request.method == Method::kPost && request.body.empty())
        if (const auto id = request.query_value("run_uuid"))
            return one(Kind::kRun, std::string(*id), least);
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(id, message.run_id());
    return one(Kind::kRun, std::move(id), least);
}

Result<Touches> runs(const Request& request, Permission least) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(ids, message.texts("run_id"));
    TUNE_TRY(more, message.texts("run_ids"));
    Touches touches;
    add_each(touches, Kind::kRun, ids, least);
    add_each(touches, Kind::kRun, more, least);
    return touches;
}

void add_model(Touches& touches, const std::string& model_id, Permission least) {
    if (model_id.empty()) return;
    const auto is_known = [&](const Touch& touch) {
        return touch.kind == Kind::kLoggedModel && touch.id == model_id;
    };
    if (std::none_of(touches.begin(), touches.end(), is_known))
        touches.push_back({Kind::kLoggedModel, model_id, least});
}

Result<Touches> run_and_models(Request& request, Permission least) {
    if (takes_fast_way(request)) {
        if (const auto metric = parse_log_metric_fast(request.body)) {
            Touches touches = one(Kind::kRun, metric->run_id, least);
            add_model(touches, metric->metric.model_id, least);
            return touches;
        }
        if (const auto batch = parse_log_batch_fast(request.body)) {
            Touches touches = one(Kind::kRun, batch->run_id, least);
            for (const Metric& metric : batch->metrics) add_model(touches, metric.model_id, least);
            return touches;
        }
    }
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(id, message.run_id());
    Touches touches = one(Kind::kRun, std::move(id), least);
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
    if (!run_id.empty()) touches.push_back({Kind::kRun, std::move(run_id), least});
    add_model(touches, model_id, least);
    if (touches.empty()) return server();
    return touches;
}

Result<Touches> registered_model(const Request& request, Permission least) {
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(name, message.required_text("name"));
    return one(Kind::kRegisteredModel, std::move(name), least);
}

Result<Touches> made_version(const Request& request, Permission least) {
    TUNE_TRY(touches, registered_model(request, least));
    TUNE_TRY(message, Message::read(request));
    TUNE_TRY(run_id, message.optional_text("run_id"));
    TUNE_TRY(model_id, message.optional_text("model_id"));
    TUNE_TRY(source, message.text("source"));
    if (run_id) touches.push_back({Kind::kRun, std::move(*run_id), Permission::kRead});
    if (model_id) touches.push_back({Kind::kLoggedModel, std::move(*model_id), Permission::kRead});
    const std::optional<ModelUri> uri = parse_model_uri(source);
    if (uri && !uri->model_id.empty())
        touches.push_back({Kind::kLoggedModel, uri->model_id, Permission::kRead});
    if (uri && !uri->name.empty())
        touches.push_back({Kind::kRegisteredModel, uri->name, Permission::kRead});
    return touches;
}

/// The experiment whose folder, named by its number, a path of the artifact store begins with.
Touches folder_of(std::string_view path, Permission least) {
    const std::string_view folder = path.substr(0, path.find('/'));
    const bool is_number = !folder.empty() && folder.size() < 19 &&
                           folder.find_first_not_of("0123456789") == std::string_view::npos;
    if (!is_number) return server();
    return one(Kind::kExperiment, std::string(folder), least);
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
        one(Kind::kMadeStudy, name, replaces ? std::max(least, Permission::kManage) : least);
    const auto warm = body->find("warm_start");
    if (warm == body->end()) return touches;
    std::string earlier = text("warm_start");
    if (warm->is_object() && warm->contains("from") && (*warm)["from"].is_string())
        earlier = (*warm)["from"].get<std::string>();
    if (!earlier.empty()) touches.push_back({Kind::kStudy, std::move(earlier), Permission::kRead});
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
        return one(Kind::kRegisteredModel, std::move(resource_id), least);
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
        if (kind == "run") touch.kind = Kind::kRun;
        if (kind == "study") touch.kind = Kind::kStudy;
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
        case Subject::kMadeModel: return one(Kind::kMade, {}, Permission::kManage);
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
        case Subject::kRunAndModels: return run_and_models(request, least);
        case Subject::kRunOrLoggedModel: return run_or_logged_model(request, least);
        case Subject::kLoggedModel:
            return one(Kind::kLoggedModel, request.parameter("model_id"), least);
        case Subject::kRegisteredModel: return registered_model(request, least);
        case Subject::kMadeVersion: return made_version(request, least);
        case Subject::kArtifact: return artifact(request, least);
        case Subject::kUpload: return one(Kind::kUpload, request.parameter("upload_id"), least);
        case Subject::kStudy: return one(Kind::kStudy, request.parameter("name"), least);
        case Subject::kMadeStudy: return made_study(request, least);
        case Subject::kGrant: return grant(request, least);
        case Subject::kTopics: return topics(request, least);
    }
    return server();
}

}  // namespace

Result<std::vector<Touch>> touches_of(Request& request, const Needs& needs) {
    TUNE_TRY(touches, read_touches(request, needs));
    if (touches.size() <= kTouchesMax) return touches;
    return Error{Code::kInvalidParameterValue,
                 "one request may name at most " + std::to_string(kTouchesMax) +
                     " runs, models and experiments, not " + std::to_string(touches.size())};
}

}  // namespace tune::tracker
