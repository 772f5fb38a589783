// A job is started and then watched by long-poll on its version: a client that asks late gets the
// newest state at once. Files and folders are touched on the artifact pool, not on network threads.

#include "tracker/api/ops/maintenance_routes.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tracker/api/artifacts/file_responses.h"
#include "tracker/api/http/handlers.h"

namespace tune::tracker {
namespace {

Json state_json(const JobRunner::State& state) {
    Json job = {{"version", state.version},       {"kind", state.kind},
                {"is_running", state.is_running}, {"phase", state.progress.phase},
                {"done", state.progress.done},    {"total", state.progress.total}};
    if (!state.result.empty()) job["result"] = parse_json(state.result).value_or(Json());
    if (state.error)
        job["error"] = {{"error_code", code_name(state.error->code)},
                        {"message", state.error->message}};
    return {{"job", std::move(job)}};
}

Response state_response(const Result<JobRunner::State>& state) {
    return state ? json_response(state_json(*state)) : error_response(state.error());
}

Error bad(const std::string& field, const std::string& what) {
    return {Code::kInvalidParameterValue, "'" + field + "' must be " + what + "."};
}

Result<Json> body_of(const Request& request) {
    if (request.body.empty()) return Json::object();
    TUNE_TRY(body, parse_json(request.body));
    if (!body.is_object())
        return Error{Code::kInvalidParameterValue, "The body must be a JSON object."};
    return body;
}

Result<bool> flag(const Json& body, const char* name) {
    if (!body.contains(name) || body[name].is_null()) return false;
    if (!body[name].is_boolean()) return bad(name, "true or false");
    return body[name].get<bool>();
}

/// A list of texts (or of whole numbers, as their texts).
Result<std::vector<std::string>> texts(const Json& body, const char* name) {
    std::vector<std::string> found;
    if (!body.contains(name) || body[name].is_null()) return found;
    if (!body[name].is_array() || body[name].size() > kGarbageIdsMax)
        return bad(name, "a list of at most " + std::to_string(kGarbageIdsMax) + " ids");
    for (const Json& one : body[name]) {
        if (one.is_number_integer())
            found.push_back(one.dump());
        else if (one.is_string())
            found.push_back(one.get<std::string>());
        else
            return bad(name, "a list of ids");
    }
    return found;
}

struct GcRequest {
    GarbageChoice choice;
    bool is_dry_run = false;
};

Result<GcRequest> parse_gc(const Request& request, std::int64_t now_ms) {
    TUNE_TRY(body, body_of(request));
    GcRequest parsed;
    TUNE_TRY(run_ids, texts(body, "run_ids"));
    TUNE_TRY(experiment_ids, texts(body, "experiment_ids"));
    TUNE_TRY(dry_run, flag(body, "dry_run"));
    parsed.is_dry_run = dry_run;
    parsed.choice.run_ids = std::move(run_ids);
    for (const std::string& text : experiment_ids) {
        ExperimentId id = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
        if (error != std::errc() || end != text.data() + text.size())
            return bad("experiment_ids", "a list of numbers");
        parsed.choice.experiment_ids.push_back(id);
    }
    // Who names something means it; who names nothing gets the time to change their mind.
    const bool is_named = !parsed.choice.run_ids.empty() || !parsed.choice.experiment_ids.empty();
    std::int64_t older_than_ms = is_named ? 0 : kUndeleteWindowMs;
    if (body.contains("older_than_ms") && !body["older_than_ms"].is_null()) {
        const Json& given = body["older_than_ms"];
        if (!given.is_number_integer() || given.get<std::int64_t>() < 0)
            return bad("older_than_ms", "a whole number of milliseconds, 0 or more");
        older_than_ms = given.get<std::int64_t>();
    }
    parsed.choice.deleted_until_ms = now_ms - std::min(now_ms, older_than_ms);
    return parsed;
}

void start_gc(Maintenance& maintenance, const Request& request, const Responder& respond) {
    Result<GcRequest> parsed = parse_gc(request, maintenance.now_ms());
    if (!parsed) return respond(error_response(parsed.error()));
    respond(state_response(
        maintenance.start_collection(std::move(parsed->choice), parsed->is_dry_run)));
}

void start_backup(Maintenance& maintenance, const Request& request, const Responder& respond) {
    const Result<Json> body = body_of(request);
    if (!body) return respond(error_response(body.error()));
    const Result<bool> with_artifacts = flag(*body, "with_artifacts");
    if (!with_artifacts) return respond(error_response(with_artifacts.error()));
    respond(state_response(maintenance.start_backup(*with_artifacts)));
}

void wait_for_job(Maintenance& maintenance, const Request& request, const Responder& respond) {
    std::int64_t after = -1;
    if (const auto text = request.query_value("after")) {
        const char* end = text->data() + text->size();
        const auto [stopped, error] = std::from_chars(text->data(), end, after);
        if (error != std::errc() || stopped != end)
            return respond(error_response(
                {Code::kInvalidParameterValue, "'after' must be the version of a job, a number"}));
    }
    maintenance.jobs().wait(after, [respond](const JobRunner::State& state) {
        respond(json_response(state_json(state)));
    });
}

Result<Response> list_backups(Maintenance& maintenance, const Request&) {
    TUNE_TRY(files, maintenance.backups());
    Json list = Json::array();
    for (const BackupFile& file : files)
        list.push_back({{"name", file.name},
                        {"size_bytes", file.size_bytes},
                        {"modified_ms", file.modified_s * 1000}});
    return json_response({{"backups", std::move(list)}});
}

Result<Response> get_backup(Maintenance& maintenance, const Request& request) {
    const std::string& name = request.parameter("name");
    TUNE_TRY(opened, maintenance.open_backup(name));
    return file_response(std::move(opened), name);
}

Result<Response> delete_backup(Maintenance& maintenance, const Request& request) {
    TUNE_TRY_VOID(maintenance.remove_backup(request.parameter("name")));
    return json_text_response("{}");
}

using Call = void (*)(Maintenance&, const Request&, const Responder&);
using DiskCall = Result<Response> (*)(Maintenance&, const Request&);

}  // namespace

void add_maintenance_routes(Router& router, Maintenance& maintenance, ArtifactStore& artifacts) {
    const auto add = [&](Method method, Needs needs, const char* pattern, const char* summary,
                         Call call) {
        const Body body = method == Method::kPost ? Body::kJson : Body::kNone;
        router.add_api(2, {method, needs, pattern, body, summary,
                           [&maintenance, call](const std::shared_ptr<Request>& request,
                                                const Responder& respond) {
                               call(maintenance, *request, respond);
                           }});
    };
    const auto add_disk = [&](Method method, Needs needs, const char* pattern, const char* summary,
                              DiskCall call) {
        router.add_api(2, {method, needs, pattern, Body::kNone, summary,
                           [&maintenance, &artifacts, call](const std::shared_ptr<Request>& request,
                                                            const Responder& respond) {
                               artifacts.pool().post([&maintenance, call, request, respond] {
                                   Result<Response> response = call(maintenance, *request);
                                   respond(response ? std::move(response).value()
                                                    : error_response(response.error()));
                               });
                           }});
    };
    constexpr Needs kLook = {Access::kRead, Subject::kServer};
    add(Method::kPost, Access::kAdmin, "/tune/gc", "Remove for good what is deleted", start_gc);
    add(Method::kPost, Access::kAdmin, "/tune/backups", "Write a backup into the data directory",
        start_backup);
    add(Method::kGet, kLook, "/tune/job", "How far the last collection or backup is", wait_for_job);
    add_disk(Method::kGet, kLook, "/tune/backups", "The backups in the data directory",
             list_backups);
    add_disk(Method::kGet, Access::kAdmin, "/tune/backups/{name}", "A backup as a file",
             get_backup);
    add_disk(Method::kDelete, Access::kAdmin, "/tune/backups/{name}", "Delete a backup",
             delete_backup);
}

}  // namespace tune::tracker
