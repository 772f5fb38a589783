// `tune import` into a folder that a server holds. The request is a file in the folder, named at
// random: a URL that made the server read files of the machine would be a hole, a file there needs
// its owner.

#include "tuner/cli/transfer/import_job.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "base/id.h"
#include "base/system/file.h"
#include "tracker/transfer/source/open_source.h"
#include "tuner/cli/terminal/study_text.h"
#include "tuner/cli/terminal/wait_line.h"
#include "tuner/cli/transfer/server_job.h"
#include "tuner/cli/transfer/transfer_text.h"

namespace tune::cli {
namespace {

namespace fs = std::filesystem;
using tracker::TransferProgress;

constexpr std::size_t kRequestBytesMax = 1u << 20;
constexpr std::size_t kNameBytes = 16;

fs::path request_file(const fs::path& data, const std::string& name) {
    return data / "imports" / (name + ".json");
}

bool is_request_name(const std::string& name) {
    return name.size() == 2 * kNameBytes &&
           name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

/// The server stands in another folder.
std::string absolute_source(const std::string& source) {
    const std::optional<fs::path> path = tracker::path_of_source(source);
    std::error_code ignored;
    return path ? fs::absolute(*path, ignored).string() : source;
}

Result<void> write_request(const ImportCommand& options, const fs::path& file) {
    std::error_code error;
    fs::create_directories(file.parent_path(), error);
    Json request = {{"source", absolute_source(options.source)},
                    {"artifacts", options.artifacts},
                    {"optuna", options.optuna},
                    {"study", options.study},
                    {"as", options.as},
                    {"artifact_roots", Json::array()}};
    for (const std::string& root : options.artifact_roots)
        request["artifact_roots"].push_back(fs::absolute(root, error).string());
    return write_file_atomic(file, to_text(request));
}

Result<ImportCommand> take_request(const fs::path& data, const std::string& name) {
    const fs::path file = request_file(data, name);
    TUNE_TRY(text, read_file(file, kRequestBytesMax));
    std::error_code ignored;
    fs::remove(file, ignored);
    TUNE_TRY(request, parse_json(text));
    ImportCommand options;
    options.source = text_of(request, "source");
    options.artifacts = text_of(request, "artifacts");
    options.optuna = request.value("optuna", false);
    options.study = text_of(request, "study");
    options.as = text_of(request, "as");
    options.data = data.string();
    for (const Json& root : request.value("artifact_roots", Json::array()))
        if (root.is_string()) options.artifact_roots.push_back(root.get<std::string>());
    return options;
}

Result<std::string> run_request(const ImportCommand& options, tracker::Store& store,
                                tuner::Studies& studies, const tracker::ArtifactStore& artifacts,
                                const tracker::Report& report) {
    bool is_over = false;
    if (options.optuna) {
        TUNE_TRY(imported, import_optuna_into(options, store, &studies, [&] {
                     is_over = is_over || !report({.phase = "importing trials"});
                     return is_over;
                 }));
        return to_text(imported);
    }
    ImportWatch watch;
    watch.on_progress = [&](const TransferProgress& progress) {
        const bool is_moving = progress.phase == TransferProgress::Phase::kMoving;
        is_over = is_over || !report({.phase = is_moving ? "importing runs" : "verifying runs",
                                      .done = progress.runs_done,
                                      .total = progress.runs_total});
    };
    watch.is_cancelled = [&] { return is_over; };
    TUNE_TRY(source, open_import_source(options));
    TUNE_TRY(done, import_into(options, *source, store, artifacts, watch));
    return to_text(Json{{"report", report_json(done)},
                        {"text", report_text(done, "Imported", options.source, options.data)},
                        {"is_whole", done.is_whole()}});
}

}  // namespace

Result<std::unique_ptr<tracker::Source>> open_import_source(const ImportCommand& options) {
    tracker::SourceOptions opening;
    opening.name = options.source;
    for (const std::string& root : options.artifact_roots)
        opening.artifact_roots.emplace_back(root);
    return tracker::open_source(opening);
}

Result<tracker::TransferReport> import_into(const ImportCommand& options, tracker::Source& source,
                                            tracker::Store& store,
                                            const tracker::ArtifactStore& artifacts,
                                            const ImportWatch& watch) {
    TUNE_TRY(mode, artifact_mode(options.artifacts));
    tracker::ImportOptions importing;
    importing.artifacts = mode;
    importing.artifact_root = fs::path(options.data) / "artifacts";
    importing.on_progress = watch.on_progress;
    importing.is_cancelled = watch.is_cancelled;
    return tracker::import_all(source, store, artifacts, importing);
}

Result<std::string> holder_for_import(const Error& error, const std::string& data) {
    if (error.code != Code::kResourceConflict) return error;
    const std::optional<std::string> url = url_of_holder(data);
    if (!url || !check_server(*url, kNamedServer_ms)) return say_holder(error, data);
    return *url;
}

void add_import_route(tracker::Router& router, tracker::Maintenance& maintenance,
                      tracker::Store& store, tuner::Studies& studies,
                      const tracker::ArtifactStore& artifacts, const fs::path& data) {
    const auto start = [&maintenance, &store, &studies, &artifacts, data](
                           const std::shared_ptr<tracker::Request>& request,
                           const tracker::Responder& respond) {
        const Result<Json> body = parse_json(request->body);
        const std::string name = body && body->is_object() ? text_of(*body, "request") : "";
        if (!is_request_name(name))
            return respond(tracker::error_response(
                {Code::kInvalidParameterValue,
                 "'request' must be the name of a file of `tune import` in <data>/imports."}));
        const auto state = maintenance.jobs().start(
            "import",
            [&store, &studies, &artifacts, data,
             name](const tracker::Report& report) -> Result<std::string> {
                TUNE_TRY(options, take_request(data, name));
                return run_request(options, store, studies, artifacts, report);
            });
        respond(state ? tracker::json_response({{"job",
                                                 {{"version", state->version},
                                                  {"kind", state->kind},
                                                  {"is_running", state->is_running}}}})
                      : tracker::error_response(state.error()));
    };
    router.add_api(2, {tracker::Method::kPost, tracker::Access::kAdmin, "/tune/imports",
                       tracker::Body::kJson, "Import another tracking store", start});
}

Result<Json> import_by_server(const ImportCommand& options, const std::string& url,
                              const std::function<bool()>& is_cancelled) {
    TUNE_TRY_VOID(artifact_mode(options.artifacts));
    TUNE_TRY(backend, remote_backend(url));
    const std::string name = random_hex(kNameBytes);
    const fs::path file = request_file(options.data, name);
    TUNE_TRY_VOID(write_request(options, file));
    std::optional<WaitLine> line;
    if (!options.quiet) line.emplace("importing");
    const auto show = [&](const std::string& phase, std::int64_t done, std::int64_t total) {
        if (!line) return;
        line->say(phase.empty() ? "importing" : phase);
        line->at(static_cast<std::size_t>(done), static_cast<std::size_t>(total));
    };
    Result<Json> result =
        run_server_job(*backend, "/api/2.0/tune/imports", {{"request", name}}, show, is_cancelled);
    std::error_code ignored;
    fs::remove(file, ignored);  // there only if the server refused it
    return result;
}

}  // namespace tune::cli
