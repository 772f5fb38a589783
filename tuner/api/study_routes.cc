// Studies over REST: create, list, pause, resume, stop.
//
// The body that creates a study is study.yaml as JSON, and is read by the same code; only the name
// of the study is called `name` here. A study is created once by its name: the same request again
// resumes it, so the request needs no id. What the body leaves out of an existing study keeps its
// value, for one client must not take the budget away that another one has given.

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>

#include "tracker/api/http/handlers.h"
#include "tracker/api/http/repeats.h"
#include "tuner/api/known_body.h"
#include "tuner/api/routes.h"
#include "tuner/api/views.h"
#include "tuner/config/doubtful_goals.h"
#include "tuner/config/study_config.h"
#include "tuner/config/study_schema.h"
#include "tuner/space/reachable.h"

namespace tune::tuner {
namespace {

using tracker::AnswerRecord;
using tracker::error_response;
using tracker::json_response;
using tracker::Method;
using tracker::Permission;
using tracker::Request;
using tracker::Responder;
using tracker::Response;

Result<Json> read_study_json(const Studies& studies, const std::string& name) {
    StudyCopy copy;
    TUNE_TRY_VOID(studies.read(name, [&copy](const Study& study) { copy = copy_of(study); }));
    return study_json(copy);
}

Response study_response(const Studies& studies, const std::string& name) {
    const Result<Json> json = read_study_json(studies, name);
    return json ? json_response(*json) : error_response(json.error());
}

/// As study_response, with how the study differed that this one has replaced, if it did, and what
/// its user may not have meant.
Response created_response(const Studies& studies, const Studies::Created& created) {
    Result<Json> json = read_study_json(studies, created.name);
    if (!json) return error_response(json.error());
    if (!created.replaced.empty()) (*json)["replaced"] = created.replaced;
    static_cast<void>(studies.read(created.name, [&json](const Study& study) {
        for (const DoubtfulGoal& doubt : doubtful_goals(study.config()))
            (*json)["warnings"].push_back(doubt.text + "; if so, make its goal \"" +
                                          std::string(goal_name(doubt.meant)) + "\"");
    }));
    return json_response(*json);
}

/// The body is study.yaml as JSON, except that REST says `name` where the file says `study`.
struct StudyBody {
    StudyConfig config;
    Studies::CreateOptions options;
};

/// What the body leaves out of a study that exists stays as it is: the second of two clients must
/// not take the budget from the first, nor the command from the agents.
void keep_what_is_left_out(const Studies& studies, Json& body) {
    const auto name = body.find("study");
    if (name == body.end() || !name->is_string()) return;
    const auto keep = [&body](const Json& whole, std::initializer_list<const char*> keys) {
        for (const char* key : keys)
            if (!body.contains(key) && whole.contains(key)) body[key] = whole[key];
    };
    std::shared_ptr<const StudyConfig> config;
    static_cast<void>(studies.read(name->get<std::string>(), [&config](const Study& study) {
        config = study.definition().shared_config();
    }));
    if (!config) return;
    const Json whole = to_json(*config);
    if (!body.contains("command"))  // a client's; `tune run` says all of them
        keep(whole,
             {"command", "scrape", "log_rules", "timeout", "env", "working_dir", "resources"});
    keep(whole, {"budget", "sampler", "pruner", "retry", "priority", "stop_after_failures", "grace",
                 "checkpoints"});
}

Result<StudyBody> read_study_body(const Studies& studies, const std::string& text) {
    TUNE_TRY(body, parse_json(text));
    if (!body.is_object())
        return Error{Code::kInvalidParameterValue, "the body must be a JSON object"};
    const bool has_name = body.contains("name");
    if (has_name) {
        if (body.contains("study") && body["study"] != body["name"])
            return Error{Code::kInvalidParameterValue,
                         "'name' and 'study' mean the same; give one of them"};
        body["study"] = body["name"];
        body.erase("name");
    }
    body.erase("request_id");  // a study is created once by its name
    StudyBody read;
    if (const auto extend = body.find("extend"); extend != body.end()) {
        if (!extend->is_boolean())
            return Error{Code::kInvalidParameterValue, "'extend' must be true or false"};
        read.options.extend = extend->get<bool>();
        body.erase(extend);
    }
    if (const auto replace = body.find("replace"); replace != body.end()) {
        if (!replace->is_boolean())
            return Error{Code::kInvalidParameterValue, "'replace' must be true or false"};
        read.options.replace = replace->get<bool>();
        body.erase(replace);
    }
    keep_what_is_left_out(studies, body);
    Result<StudyConfig> config = study_config_from_json(body);
    constexpr std::string_view kInFile = "study: ";
    if (!config && has_name && config.error().message.starts_with(kInFile))
        return Error{config.error().code, "name: " + config.error().message.substr(kInFile.size())};
    if (!config) return config.error();
    TUNE_TRY_VOID(check_reachable(config->space));
    read.config = std::move(*config);
    return read;
}

void create_study(Studies& studies, const Request& request, const Responder& respond) {
    Result<StudyBody> body = read_study_body(studies, request.body);
    if (!body) return respond(error_response(body.error()));
    body->options.only_new = request.is_new;
    body->options.owner_id = tracker::owner_of(request.principal);
    if (const auto* const user = tracker::user_of(request.principal))
        body->options.user = user->username;
    studies.create(std::move(body->config), body->options,
                   [&studies, respond](const Result<Studies::Created>& created) {
                       if (!created) return respond(error_response(created.error()));
                       Response response = created_response(studies, *created);
                       response.headers.emplace_back("X-Tune-Created",
                                                     created->is_new ? "true" : "false");
                       respond(std::move(response));
                   });
}

Result<std::int64_t> number_of(const Request& request, std::string_view name,
                               std::int64_t fallback) {
    const auto text = request.query_value(name);
    if (!text) return fallback;
    std::int64_t number = 0;
    const auto end = text->data() + text->size();
    const auto [at, error] = std::from_chars(text->data(), end, number);
    if (text->empty() || error != std::errc() || at != end)
        return Error{Code::kInvalidParameterValue, std::string(name) + " '" + std::string(*text) +
                                                       "' is not a whole number of 64 bits"};
    return number;
}

void get_study(Studies& studies, const Request& request, const Responder& respond) {
    const std::string& name = request.parameter("name");
    const Result<std::int64_t> version = number_of(request, "version", -1);
    const Result<std::int64_t> wait_ms = number_of(request, "wait_ms", 0);
    if (!version) return respond(error_response(version.error()));
    if (!wait_ms || *wait_ms < 0)
        return respond(error_response(
            wait_ms ? Error{Code::kInvalidParameterValue, "wait_ms must be 0 or more"}
                    : wait_ms.error()));
    if (!request.query_value("version")) return respond(study_response(studies, name));
    studies.wait(name, *version, *wait_ms, [&studies, name, respond](const Result<void>& waited) {
        if (!waited) return respond(error_response(waited.error()));
        respond(study_response(studies, name));
    });
}

/// The studies of these names, or all; one at a time, so that many of them keep nobody waiting.
/// Those that are gone meanwhile are left out.
template <class Keep>
Json studies_json(const Studies& studies, const Keep& keep) {
    std::vector<std::string> names;
    studies.read_all([&](const Study& study) {
        if (keep(study)) names.push_back(study.name());
    });
    Json list = Json::array();
    for (const std::string& name : names) {
        std::optional<StudyCopy> copy;
        static_cast<void>(studies.read(name, [&](const Study& study) {
            if (keep(study)) copy = copy_of(study);
        }));
        if (copy) list.push_back(study_json(*copy));
    }
    return list;
}

Response all_studies(const Studies& studies) {
    return json_response({{"studies", studies_json(studies, [](const Study&) { return true; })}});
}

/// Those whose experiments who asks may read.
Response readable_studies(const TuningParts& parts, const Request& request) {
    std::vector<std::int64_t> experiments;
    parts.studies.read_all(
        [&](const Study& study) { experiments.push_back(study.identity().experiment_id); });
    const auto readable = tracker::readable_experiments(
        parts.store, request, std::move(experiments), tracker::ResourceType::kRun);
    if (!readable) return error_response(readable.error());
    const auto is_readable = [&readable](const Study& study) {
        return std::find(readable->begin(), readable->end(), study.identity().experiment_id) !=
               readable->end();
    };
    return json_response({{"studies", studies_json(parts.studies, is_readable)}});
}

void list_studies(const TuningParts& parts, const std::shared_ptr<Request>& request,
                  const Responder& respond) {
    if (!request->viewer) return respond(all_studies(parts.studies));
    const bool posted = parts.store.post_read(
        [parts, request, respond] { respond(readable_studies(parts, *request)); });
    if (!posted) respond(error_response(tracker::too_busy()));
}

void replay_study(Studies& studies, const Request& request, const Responder& respond) {
    studies.replay(request.parameter("name"), [respond](const Result<ReplayReport>& report) {
        if (!report) return respond(error_response(report.error()));
        Json differences = Json::array();
        for (const ReplayDifference& one : report->differences)
            differences.push_back({{"number", one.number},
                                   {"parameter", one.parameter},
                                   {"recorded", json_number(one.recorded)},
                                   {"replayed", json_number(one.replayed)}});
        respond(json_response({{"compared", report->compared},
                               {"differing", report->differing},
                               {"given", report->given},
                               {"redrawn", report->redrawn},
                               {"is_whole", report->is_whole},
                               {"differences", std::move(differences)}}));
    });
}

void change_study(Studies& studies, const std::string& name, Studies::Change change,
                  const Responder& respond) {
    studies.change(name, change, [&studies, name, respond](const Result<void>& changed) {
        if (!changed) return respond(error_response(changed.error()));
        respond(study_response(studies, name));
    });
}

/// The answer of a change that may be asked for again: the study as the change left it, recorded
/// with it.
struct StudyAnswer {
    std::shared_ptr<std::string> text = std::make_shared<std::string>();

    [[nodiscard]] Recording recording(const AnswerRecord& record) const {
        return [text = text, record](const Study* study, std::vector<tracker::Command> commands) {
            *text = to_text(study_json(copy_of(*study)));
            return record.with(std::move(commands), *text);
        };
    }
    [[nodiscard]] Done<void> done(const Studies& studies, std::string name,
                                  const Responder& respond) const {
        return [&studies, text = text, name = std::move(name), respond](const Result<void>& done) {
            if (!done) return respond(error_response(done.error()));
            if (text->empty()) return respond(study_response(studies, name));  // nothing changed
            respond(tracker::json_text_response(*text));
        };
    }
};

void erase_study(Studies& studies, const Request& request, const AnswerRecord& record,
                 const Responder& respond) {
    const auto recording = [record](const Study*, std::vector<tracker::Command> commands) {
        return record.with(std::move(commands), "{}");
    };
    const auto done = [respond](const Result<void>& erased) {
        respond(erased ? json_response(Json::object()) : error_response(erased.error()));
    };
    studies.erase(request.parameter("name"), done, recording);
}

void rename_study(Studies& studies, const Request& request, const AnswerRecord& record,
                  const Responder& respond) {
    const Result<Json> body = parse_json(request.body);
    if (!body) return respond(error_response(body.error()));
    const auto name = body->is_object() ? body->find("name") : body->end();
    if (name == body->end() || !name->is_string())
        return respond(error_response(
            {Code::kInvalidParameterValue, "field 'name' must be the study's new name"}));
    const std::string new_name = name->get<std::string>();
    const StudyAnswer answer;
    studies.rename(request.parameter("name"), new_name, answer.done(studies, new_name, respond),
                   answer.recording(record));
}

void prioritize_study(Studies& studies, const Request& request, const AnswerRecord&,
                      const Responder& respond) {
    const Result<Json> body = parse_json(request.body);
    if (!body) return respond(error_response(body.error()));
    const auto priority = body->is_object() ? body->find("priority") : body->end();
    const auto given = priority == body->end()
                           ? std::optional<std::int64_t>()
                           : whole_within(*priority, -kPriorityMax, kPriorityMax);
    if (!given)
        return respond(error_response(
            {Code::kInvalidParameterValue, "field 'priority' must be a whole number in -" +
                                               std::to_string(kPriorityMax) + ".." +
                                               std::to_string(kPriorityMax)}));
    const std::string& name = request.parameter("name");
    studies.set_priority(name, static_cast<int>(*given),
                         [&studies, name, respond](const Result<void>& changed) {
                             if (!changed) return respond(error_response(changed.error()));
                             respond(study_response(studies, name));
                         });
}

void restore_study(Studies& studies, const Request& request, const AnswerRecord& record,
                   const Responder& respond) {
    const std::string& name = request.parameter("name");
    const StudyAnswer answer;
    studies.restore(name, answer.done(studies, name, respond), answer.recording(record));
}

void add_lifecycle_routes(tracker::Router& router, TuningParts parts) {
    using Call = void (*)(Studies&, const Request&, const AnswerRecord&, const Responder&);
    Studies& studies = parts.studies;
    const auto repeats = std::make_shared<tracker::Repeats>(parts.store);
    const auto add = [&](Method method, Permission least, const char* rest, const char* summary,
                         Call call) {
        const auto body = method == Method::kPost ? tracker::Body::kJson : tracker::Body::kNone;
        router.add_api(2, {method,
                           {tracker::Access::kRun, tracker::Subject::kStudy, least},
                           std::string("/tune/studies/{name}") + rest,
                           body,
                           summary,
                           [&studies, repeats, call](const std::shared_ptr<Request>& request,
                                                     const Responder& respond) {
                               repeats->once(request, respond,
                                             [&studies, request, call](const AnswerRecord& record,
                                                                       const Responder& once) {
                                                 call(studies, *request, record, once);
                                             });
                           }});
    };
    add(Method::kPost, Permission::kEdit, "/priority", "gives a study another priority",
        prioritize_study);
    add(Method::kDelete, Permission::kManage, "", "removes a study, with its runs", erase_study);
    add(Method::kPost, Permission::kEdit, "/rename", "gives a study another name", rename_study);
    add(Method::kPost, Permission::kManage, "/restore", "brings back a study", restore_study);
}

}  // namespace

void add_study_routes(tracker::Router& router, TuningParts parts) {
    Studies& studies = parts.studies;
    router.add_api(2,
                   {Method::kPost,
                    {tracker::Access::kRun, tracker::Subject::kMadeStudy},
                    "/tune/studies",
                    tracker::Body::kJson,
                    "creates a study, or resumes the one of this name",
                    [&studies](const std::shared_ptr<Request>& request, const Responder& respond) {
                        create_study(studies, *request, respond);
                    }});
    router.add_api(2, {Method::kGet,
                       {tracker::Access::kRead, tracker::Subject::kCut},
                       "/tune/studies",
                       tracker::Body::kNone,
                       "lists the studies",
                       [parts](const std::shared_ptr<Request>& request, const Responder& respond) {
                           list_studies(parts, request, respond);
                       }});
    router.add_api(2,
                   {Method::kGet,
                    {tracker::Access::kRead, tracker::Subject::kStudy},
                    "/tune/studies/{name}",
                    tracker::Body::kNone,
                    "one study",
                    [&studies](const std::shared_ptr<Request>& request, const Responder& respond) {
                        get_study(studies, *request, respond);
                    }});
    router.add_api(2,
                   {Method::kGet,
                    {tracker::Access::kRun, tracker::Subject::kStudy},
                    "/tune/studies/{name}/replay",
                    tracker::Body::kNone,
                    "asks for every suggestion again and compares",
                    [&studies](const std::shared_ptr<Request>& request, const Responder& respond) {
                        replay_study(studies, *request, respond);
                    }});
    router.add_api(2, {Method::kGet,
                       {tracker::Access::kRead, tracker::Subject::kNothing},
                       "/tune/schema",
                       tracker::Body::kNone,
                       "the JSON Schema of studies",
                       [](const std::shared_ptr<Request>&, const Responder& respond) {
                           Response response;
                           response.body = study_schema();
                           response.content_type = "application/json";
                           respond(std::move(response));
                       }});
    add_lifecycle_routes(router, parts);
    struct Verb {
        const char* name;
        Studies::Change change;
        const char* summary;
    };
    for (const Verb& verb :
         {Verb{"pause", Studies::Change::kPause, "starts no more trials"},
          Verb{"resume", Studies::Change::kResume, "starts trials again"},
          Verb{"stop", Studies::Change::kStop, "ends the study and its running trials"}}) {
        router.add_api(2, {Method::kPost,
                           {tracker::Access::kRun, tracker::Subject::kStudy},
                           std::string("/tune/studies/{name}/") + verb.name,
                           tracker::Body::kJson,
                           verb.summary,
                           [&studies, change = verb.change](const std::shared_ptr<Request>& request,
                                                            const Responder& respond) {
                               change_study(studies, request->parameter("name"), change, respond);
                           }});
    }
}

}  // namespace tune::tuner
