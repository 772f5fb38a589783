// Trials over REST: ask, report, tell, enqueue, and reading them.
//
// A handler reads the body, hands a value to Studies and responds when Studies calls back; it
// never waits, for it runs on a thread of the network. Bodies are read by read_known_body, which
// refuses unknown fields: a misspelt optional field would otherwise be ignored in silence. A
// request that changes something may be sent again with the same request_id, and Studies gives the
// same answer. Lists of trials are built on the read pool, since they may be long.

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/limits.h"
#include "tuner/api/known_body.h"
#include "tuner/api/routes.h"
#include "tuner/api/views.h"
#include "tuner/study/registry/clients/client_trials.h"

namespace tune::tuner {
namespace {

using tracker::error_response;
using tracker::json_response;
using tracker::Message;
using tracker::Method;
using tracker::Request;
using tracker::Responder;
using RequestPtr = std::shared_ptr<Request>;

Error busy() {
    return {Code::kRequestLimitExceeded, "too many reads wait; try again in a moment"};
}

Result<std::uint64_t> whole_number(std::string_view text, const char* what) {
    std::uint64_t number = 0;
    const auto end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || at != end || text.empty())
        return Error{Code::kInvalidParameterValue, std::string(what) + " '" + std::string(text) +
                                                       "' is not a number of 0 or more"};
    return number;
}

// --- ask, report, tell, enqueue ------------------------------------------------------------------

Json asked_json(const AskedTrial& trial) {
    const Result<Json> params = parse_json(trial.params_json);
    Json json = {{"number", trial.number},
                 {"attempt", trial.attempt},
                 {"run_id", trial.run_id},
                 {"experiment_id", std::to_string(trial.experiment_id)},
                 {"params", params ? *params : Json::object()},
                 {"seed", trial.seed}};
    if (!trial.token.empty()) json["token"] = trial.token;
    if (trial.origin) add_origin(*trial.origin, trial.steps, json);
    return json;
}

struct Range {
    std::int64_t min = 0;
    std::int64_t max = 0;
};

/// `fallback` when it is absent.
Result<std::int64_t> whole_number_of(const Message& message, const char* name, Range range,
                                     std::int64_t fallback) {
    TUNE_TRY(given, message.integer(name));
    const std::int64_t number = given.value_or(fallback);
    if (number < range.min || number > range.max)
        return Error{Code::kInvalidParameterValue,
                     std::string(name) + " must be " + std::to_string(range.min) + ".." +
                         std::to_string(range.max) + ", found " + std::to_string(number)};
    return number;
}

Result<AskRequest> read_ask(const Request& request) {
    TUNE_TRY(body, read_known_body(request, {"count", "request_id", "worker", "lease_ttl_ms"}));
    TUNE_TRY(count, whole_number_of(body, "count", {1, kAskCountMax}, 1));
    TUNE_TRY(request_id, body.text("request_id"));
    TUNE_TRY(worker, body.text("worker"));
    TUNE_TRY(ttl_ms, whole_number_of(body, "lease_ttl_ms", {0, kAskLeaseMax_ms}, 0));
    return AskRequest{.study = request.parameter("name"),
                      .count = static_cast<int>(count),
                      .request_id = request_id,
                      .worker = worker,
                      .lease_ttl_ms = ttl_ms};
}

void ask(Studies& studies, const Request& request, const Responder& respond) {
    Result<AskRequest> wanted = read_ask(request);
    if (!wanted) return respond(error_response(wanted.error()));
    const std::string name = wanted->study;
    studies.clients().ask(std::move(wanted).value(),
                          [&studies, name, respond](const Result<std::vector<AskedTrial>>& trials) {
                              if (!trials) return respond(error_response(trials.error()));
                              Json answer = {{"trials", Json::array()}};
                              for (const AskedTrial& trial : *trials)
                                  answer["trials"].push_back(asked_json(trial));
                              static_cast<void>(studies.read(name, [&answer](const Study& study) {
                                  answer["state"] = study_state_name(study.state());
                              }));
                              respond(json_response(answer));
                          });
}

Result<TrialName> read_trial_name(const Request& request, const Message& message) {
    TUNE_TRY(number, message.required_integer("number"));
    TUNE_TRY(attempt, whole_number_of(message, "attempt", {0, std::numeric_limits<int>::max()}, 0));
    if (number < 0) return Error{Code::kInvalidParameterValue, "'number' must be 0 or more"};
    return TrialName{.study = request.parameter("name"),
                     .number = static_cast<std::uint64_t>(number),
                     .attempt = static_cast<int>(attempt)};
}

Result<ClientReport> read_report(const Request& request) {
    TUNE_TRY(message, read_known_body(
                          request, {"number", "attempt", "step", "value", "metric", "request_id"}));
    TUNE_TRY(trial, read_trial_name(request, message));
    TUNE_TRY(step, message.integer("step"));
    TUNE_TRY(value, message.required_number("value"));
    TUNE_TRY(metric, message.text("metric"));
    return ClientReport{.trial = trial, .step = step.value_or(0), .value = value, .metric = metric};
}

Done<std::optional<Action>> answer_action(const Responder& respond) {
    return [respond](const Result<std::optional<Action>>& action) {
        if (!action) return respond(error_response(action.error()));
        std::string_view name = "continue";
        if (*action) name = **action == Action::kCheckpointStop ? "checkpoint_stop" : "stop";
        respond(json_response({{"action", name}}));
    };
}

void report(Studies& studies, const Request& request, const Responder& respond) {
    Result<ClientReport> wanted = read_report(request);
    if (!wanted) return respond(error_response(wanted.error()));
    studies.clients().report(std::move(wanted).value(), answer_action(respond));
}

void renew(Studies& studies, const Request& request, const Responder& respond) {
    const Result<Message> body = read_known_body(request, {"number", "attempt"});
    if (!body) return respond(error_response(body.error()));
    Result<TrialName> name = read_trial_name(request, *body);
    if (!name) return respond(error_response(name.error()));
    studies.clients().renew(std::move(name).value(), answer_action(respond));
}

void profile(Studies& studies, const Request& request, const Responder& respond) {
    const Result<Message> body = read_known_body(request, {"number", "steps"});
    if (!body) return respond(error_response(body.error()));
    Result<TrialName> name = read_trial_name(request, *body);
    if (!name) return respond(error_response(name.error()));
    const Result<std::int64_t> steps =
        whole_number_of(*body, "steps", {1, kProfileStepsMax}, kProfileSteps);
    if (!steps) return respond(error_response(steps.error()));
    studies.clients().profile(std::move(name).value(), *steps,
                              [respond, steps = *steps](const Result<void>& asked) {
                                  if (!asked) return respond(error_response(asked.error()));
                                  respond(json_response({{"steps", steps}}));
                              });
}

/// One value an objective, in their order.
Result<void> read_values(const Json& values, TellRequest& wanted) {
    if (!values.is_array() || values.empty() || values.size() > kObjectivesMax)
        return Error{Code::kInvalidParameterValue,
                     "'values' must be a list with one number per objective"};
    for (std::size_t i = 0; i < values.size(); ++i) {
        const Message item(Json{{std::to_string(i), values[i]}}, "values.");
        TUNE_TRY(value, item.required_number(std::to_string(i)));
        if (i == 0)
            wanted.value = value;
        else
            wanted.more_values.push_back(value);
    }
    return {};
}

/// Values of the metrics with bounds, by name.
Result<void> read_constraints(const Json& constraints, TellRequest& wanted) {
    if (!constraints.is_object())
        return Error{Code::kInvalidParameterValue,
                     "'constraints' must be an object of numbers, such as {\"latency_ms\": 12.5}"};
    const Message values(constraints, "constraints.");
    for (const auto& [name, given] : constraints.items()) {
        TUNE_TRY(value, values.required_number(name));
        wanted.constraints.emplace_back(name, value);
    }
    return {};
}

Result<TellRequest> read_tell(const Request& request) {
    TUNE_TRY(message,
             read_known_body(request, {"number", "attempt", "value", "values", "constraints",
                                       "cost", "state", "reason", "request_id"}));
    TUNE_TRY(trial, read_trial_name(request, message));
    TellRequest wanted{.trial = trial};
    TUNE_TRY(request_id, message.text("request_id"));
    TUNE_TRY(reason, message.text("reason"));
    TUNE_TRY(state, message.text("state"));
    TUNE_TRY(has_value, message.has("value"));
    TUNE_TRY(has_values, message.has("values"));
    wanted.request_id = request_id;
    wanted.reason = reason;
    if (has_value && has_values)
        return Error{Code::kInvalidParameterValue,
                     "'value' and 'values' mean the same; give one of them"};
    if (has_value) {
        TUNE_TRY(value, message.required_number("value"));
        wanted.value = value;
    }
    TUNE_TRY(has_constraints, message.has("constraints"));
    if (has_values) TUNE_TRY_VOID(read_values(message.object().at("values"), wanted));
    if (has_constraints)
        TUNE_TRY_VOID(read_constraints(message.object().at("constraints"), wanted));
    TUNE_TRY(has_cost, message.has("cost"));
    if (has_cost) {
        TUNE_TRY(cost, message.required_number("cost"));
        wanted.cost = cost;
    }
    if (!state.empty()) {
        TUNE_TRY(known, trial_state_from_name(state));
        wanted.state = known;
    }
    return wanted;
}

void answer_trial(const Studies& studies, const TrialName& name, const Responder& respond) {
    std::shared_ptr<const StudyConfig> config;
    std::optional<TrialCopy> copy;
    const Result<void> read = studies.read(name.study, [&](const Study& study) {
        config = study.definition().shared_config();
        if (const Trial* trial = study.trials().find(name.number)) copy = copy_of(study, *trial);
    });
    if (!read) return respond(error_response(read.error()));
    if (!copy)
        return respond(error_response(
            {Code::kResourceDoesNotExist,
             "study '" + name.study + "' has no trial " + std::to_string(name.number)}));
    respond(json_response(trial_json(*config, *copy)));
}

void tell(Studies& studies, const Request& request, const Responder& respond) {
    Result<TellRequest> wanted = read_tell(request);
    if (!wanted) return respond(error_response(wanted.error()));
    const TrialName name = wanted->trial;
    studies.clients().tell(std::move(wanted).value(),
                           [&studies, name, respond](const Result<void>& told) {
                               if (!told) return respond(error_response(told.error()));
                               answer_trial(studies, name, respond);
                           });
}

void enqueue(Studies& studies, const Request& request, const Responder& respond) {
    const Result<Message> body = read_known_body(request, {"params", "request_id"});
    if (!body) return respond(error_response(body.error()));
    const auto params = body->object().find("params");
    if (params == body->object().end() || !params->is_object())
        return respond(error_response(
            {Code::kInvalidParameterValue,
             "the body must have an object 'params', such as {\"params\": {\"x\": 0.5}}"}));
    const Result<std::string> request_id = body->text("request_id");
    if (!request_id) return respond(error_response(request_id.error()));
    studies.clients().enqueue(request.parameter("name"), to_text(*params), *request_id,
                              [respond](const Result<AskedTrial>& trial) {
                                  if (!trial) return respond(error_response(trial.error()));
                                  respond(json_response(asked_json(*trial)));
                              });
}

// --- reading -------------------------------------------------------------------------------------

struct TrialQuery {
    std::string study;
    std::optional<TrialState> state;
    bool with_intermediate = false;
    std::size_t max_results = static_cast<std::size_t>(kTrialsPage);
    std::uint64_t first = 0;
};

Result<TrialQuery> read_query(const Request& request) {
    TrialQuery query{.study = request.parameter("name"), .state = {}};
    if (const auto state = request.query_value("state"); state && !state->empty()) {
        TUNE_TRY(known, trial_state_from_name(*state));
        query.state = known;
    }
    if (const auto fields = request.query_value("fields"); fields && !fields->empty()) {
        if (*fields != "intermediate")
            return Error{Code::kInvalidParameterValue,
                         "unknown field '" + std::string(*fields) + "'; known: intermediate"};
        query.with_intermediate = true;
    }
    if (const auto count = request.query_value("max_results"); count && !count->empty()) {
        TUNE_TRY(number, whole_number(*count, "max_results"));
        if (number < 1 || number > static_cast<std::uint64_t>(kTrialsPageMax))
            return Error{Code::kInvalidParameterValue,
                         "max_results must be 1.." + std::to_string(kTrialsPageMax)};
        query.max_results = number;
    }
    if (const auto token = request.query_value("page_token"); token && !token->empty()) {
        TUNE_TRY(number, whole_number(*token, "page_token"));
        query.first = number;
    }
    return query;
}

/// The page, and the objective's name for the intermediate values.
struct TrialPage {
    Json trials = Json::array();
    std::string next_page_token;
    std::string metric;
};

/// Trials that are copied under the lock at a time: about 0.1 ms.
constexpr std::size_t kTrialsCopied = 128;
/// Trials that are passed over at a time because of their state: the same.
constexpr std::size_t kTrialsPassed = 20'000;

/// Some of the trials that a query wants, and where the next ones begin.
struct TrialCopies {
    std::shared_ptr<const StudyConfig> config;
    std::vector<TrialCopy> trials;
    std::uint64_t next = 0;
    bool has_more = false;  ///< `next` is one that it wants
    bool is_end = false;    ///< there are no more
};

Result<TrialCopies> copy_some(const Studies& studies, const TrialQuery& query, std::uint64_t first,
                              std::size_t count_max) {
    TrialCopies some;
    TUNE_TRY_VOID(studies.read(query.study, [&](const Study& study) {
        some.config = study.definition().shared_config();
        const auto& trials = study.trials();
        std::uint64_t number = first;
        for (; number < trials.size() && number - first < kTrialsPassed; ++number) {
            if (query.state && trials[number].state != *query.state) continue;
            some.has_more = some.trials.size() == count_max;
            if (some.has_more) break;
            some.trials.push_back(copy_of(study, trials[number]));
        }
        some.next = number;
        some.is_end = number >= trials.size();
    }));
    return some;
}

/// A part at a time: each trial is as it was at one moment, the last ones later than the first.
Result<TrialPage> read_page(const Studies& studies, const TrialQuery& query) {
    TrialPage page;
    for (std::uint64_t next = query.first;;) {
        const std::size_t left = query.max_results - page.trials.size();
        TUNE_TRY(some, copy_some(studies, query, next, std::min(left, kTrialsCopied)));
        page.metric = some.config->metric.name;
        for (const TrialCopy& trial : some.trials)
            page.trials.push_back(trial_json(*some.config, trial));
        next = some.next;
        if (some.is_end) return page;
        if (!some.has_more || page.trials.size() < query.max_results) continue;
        page.next_page_token = std::to_string(next);
        return page;
    }
}

Result<void> add_intermediate(const tracker::Store& store, TrialPage& page) {
    std::unordered_map<std::string, Json> by_run;
    std::vector<std::string> run_ids;
    const auto read_some = [&]() -> Result<void> {
        TUNE_TRY(all, store.series(run_ids, page.metric, kIntermediatePoints));
        for (const tracker::Series& series : all) {
            Json points = Json::array();
            for (const tracker::SeriesBucket& bucket : series.buckets) {
                // Of several rows of one step the last one counts.
                if (!points.empty() && points.back()[0] == bucket.last_step)
                    points.erase(points.size() - 1);
                points.push_back(Json::array({bucket.last_step, json_number(bucket.last)}));
            }
            by_run[series.run_id] = std::move(points);
        }
        run_ids.clear();
        return {};
    };
    for (const Json& trial : page.trials) {
        const std::string run_id = trial["run_id"].get<std::string>();
        if (!run_id.empty()) run_ids.push_back(run_id);
        if (run_ids.size() == tracker::kBulkRunsMax) TUNE_TRY_VOID(read_some());
    }
    if (!run_ids.empty()) TUNE_TRY_VOID(read_some());
    for (Json& trial : page.trials) {
        const auto found = by_run.find(trial["run_id"].get<std::string>());
        trial["intermediate"] = found == by_run.end() ? Json::array() : std::move(found->second);
    }
    return {};
}

tracker::Response page_response(TrialPage page) {
    Json answer = {{"trials", std::move(page.trials)}};
    if (!page.next_page_token.empty()) answer["next_page_token"] = page.next_page_token;
    return json_response(answer);
}

void list_trials(TuningParts parts, const Request& request, const Responder& respond) {
    const Result<TrialQuery> query = read_query(request);
    if (!query) return respond(error_response(query.error()));
    const auto read = [parts, query = *query, respond] {
        Result<TrialPage> page = read_page(parts.studies, query);
        if (!page) return respond(error_response(page.error()));
        if (query.with_intermediate) {
            const Result<void> added = add_intermediate(parts.store, *page);
            if (!added) return respond(error_response(added.error()));
        }
        respond(page_response(std::move(page).value()));
    };
    if (!parts.store.post_read(read)) respond(error_response(busy()));
}

void get_trial(const Studies& studies, const Request& request, const Responder& respond) {
    const Result<std::uint64_t> number = whole_number(request.parameter("number"), "trial");
    if (!number) return respond(error_response(number.error()));
    answer_trial(studies, {.study = request.parameter("name"), .number = *number}, respond);
}

}  // namespace

void add_trial_routes(tracker::Router& router, TuningParts parts) {
    struct Call {
        const char* name;
        const char* summary;
        void (*handle)(Studies&, const Request&, const Responder&);
    };
    Studies& studies = parts.studies;
    for (const Call& call : {Call{"ask", "starts trials for a client", &ask},
                             Call{"report", "an intermediate value of a client's trial", &report},
                             Call{"renew", "keeps the lease of a client's trial", &renew},
                             Call{"tell", "ends a client's trial", &tell},
                             Call{"profile", "asks for a trace of a running trial", &profile},
                             Call{"enqueue", "adds a trial with given values", &enqueue}}) {
        router.add_api(2, {Method::kPost,
                           {tracker::Access::kRun, tracker::Subject::kStudy},
                           std::string("/tune/studies/{name}/") + call.name,
                           tracker::Body::kJson,
                           call.summary,
                           [&studies, handle = call.handle](const RequestPtr& request,
                                                            const Responder& respond) {
                               handle(studies, *request, respond);
                           }});
    }
    router.add_api(2, {Method::kGet,
                       {tracker::Access::kRead, tracker::Subject::kStudy},
                       "/tune/studies/{name}/trials",
                       tracker::Body::kNone,
                       "the trials of a study, by number",
                       [parts](const RequestPtr& request, const Responder& respond) {
                           list_trials(parts, *request, respond);
                       }});
    router.add_api(2, {Method::kGet,
                       {tracker::Access::kRead, tracker::Subject::kStudy},
                       "/tune/studies/{name}/trials/{number}",
                       tracker::Body::kNone,
                       "one trial",
                       [&studies](const RequestPtr& request, const Responder& respond) {
                           get_trial(studies, *request, respond);
                       }});
}

}  // namespace tune::tuner
