// The two backends and the choice between them. RemoteBackend is the HTTP client; LocalBackend
// calls the router of a server in this process, as the HTTP server would. A folder that another
// process holds has that server's address in it, so it is asked there. Refusals of routes become
// sentences for the command line.

#include "tuner/cli/backend.h"

#include <filesystem>
#include <functional>
#include <future>
#include <nlohmann/json.hpp>

#include "base/text/percent.h"
#include "tracker/api/http/url.h"
#include "tracker/client/client.h"
#include "tracker/client/mlflow_environment.h"
#include "tuner/cli/options.h"
#include "tuner/space/error_text.h"

namespace tune::cli {
namespace {

constexpr const char* kStudies = "/api/2.0/tune/studies";

constexpr std::string_view kNoStudy = "there is no study '";

/// "there is no study 'x'; ..." with the name that may be meant, and with the place where it is
/// not: who named none may mean another. `list_studies` gives what the list of studies answers.
Error located(Error error, const std::string& place,
              const std::function<Result<Json>()>& list_studies) {
    if (error.code != Code::kResourceDoesNotExist || !error.message.starts_with(kNoStudy))
        return error;
    const std::size_t end = error.message.find('\'', kNoStudy.size());
    const Result<Json> listed = list_studies();
    if (listed && end != std::string::npos) {
        std::vector<std::string> names;
        for (const Json& study : listed->value("studies", Json::array()))
            names.push_back(study.value("name", ""));
        const std::string name = error.message.substr(kNoStudy.size(), end - kNoStudy.size());
        const std::string meant = tuner::did_you_mean(name, names);
        if (!meant.empty() && error.message.compare(end + 1, 2, "; ") == 0)
            error.message.erase(end + 1, 1);  // the question ends a sentence
        error.message.insert(end + 1, meant);
    }
    error.message += " (looked in " + place + ")";
    return error;
}

class RemoteBackend final : public Backend {
public:
    RemoteBackend(std::unique_ptr<tracker::Client> client, std::string url, std::string place)
        : client_(std::move(client)), url_(std::move(url)), place_(std::move(place)) {}

    Result<Json> get(std::string_view path) override { return plain(client_->get(path)); }
    Result<Json> post(std::string_view path, const Json& body) override {
        return plain(client_->post(path, body));
    }
    Result<Json> patch(std::string_view path, const Json& body) override {
        return plain(client_->patch(path, body));
    }
    using Backend::remove;
    Result<Json> remove(std::string_view path, const Json& body) override {
        return plain(client_->remove(path, body));
    }
    std::string where() const override { return url_; }

private:
    /// A refusal is a sentence for the user, who knows nothing of routes; that they name the
    /// method and the path matters where nothing sensible came back.
    [[nodiscard]] Result<Json> plain(Result<Json> answer) const {
        if (answer) return answer;
        Error error = answer.error();
        const bool is_refusal =
            error.code == Code::kInvalidParameterValue || error.code == Code::kInvalidState ||
            error.code == Code::kResourceConflict || error.code == Code::kResourceDoesNotExist ||
            error.code == Code::kResourceAlreadyExists || error.code == Code::kResourceExhausted;
        if (is_refusal) error.context.clear();
        return located(std::move(error), place_, [this] { return client_->get(kStudies); });
    }

    std::unique_ptr<tracker::Client> client_;
    std::string url_;
    std::string place_;
};

Result<std::unique_ptr<Backend>> placed_backend(const std::string& url, std::string place) {
    TUNE_TRY(client, tracker::create_client({.url = url, .retries = 2}));
    return std::unique_ptr<Backend>(
        std::make_unique<RemoteBackend>(std::move(client), url, std::move(place)));
}

/// Calls the routes as the HTTP server does, and waits for the answer.
class LocalBackend final : public Backend {
public:
    LocalBackend(LocalServer& server, std::string where)
        : server_(server), where_(std::move(where)) {}
    LocalBackend(std::unique_ptr<LocalServer> server, std::string where)
        : owned_(std::move(server)), server_(*owned_), where_(std::move(where)) {}

    Result<Json> get(std::string_view path) override {
        return call(tracker::Method::kGet, path, {});
    }
    Result<Json> post(std::string_view path, const Json& body) override {
        return call(tracker::Method::kPost, path, to_text(body));
    }
    Result<Json> patch(std::string_view path, const Json& body) override {
        return call(tracker::Method::kPatch, path, to_text(body));
    }
    using Backend::remove;
    Result<Json> remove(std::string_view path, const Json& body) override {
        return call(tracker::Method::kDelete, path, body.empty() ? std::string() : to_text(body));
    }
    std::string where() const override { return where_; }

private:
    Result<Json> call(tracker::Method method, std::string_view path, std::string body) {
        auto request = std::make_shared<tracker::Request>();
        const std::size_t query = path.find('?');
        request->method = method;
        request->raw_path = path.substr(0, query);
        request->path = percent_decode(request->raw_path);
        if (query != std::string_view::npos)
            request->query = tracker::parse_query(path.substr(query + 1));
        request->headers.emplace_back("Content-Type", "application/json");
        request->body = std::move(body);
        request->principal = tracker::OwnerPrincipal{};
        auto promise = std::make_shared<std::promise<tracker::Response>>();
        std::future<tracker::Response> answer = promise->get_future();
        server_.router().dispatch(std::move(request), [promise](tracker::Response response) {
            promise->set_value(std::move(response));
        });
        const tracker::Response response = answer.get();
        TUNE_TRY(json, parse_json(response.body.empty() ? "{}" : response.body));
        if (response.status < 400) return json;
        return located(
            Error{code_from_name(json.value("error_code", "")), json.value("message", "")},
            "the folder " + where_, [this] { return call(tracker::Method::kGet, kStudies, {}); });
    }

    std::unique_ptr<LocalServer> owned_;
    LocalServer& server_;
    std::string where_;
};

Result<std::unique_ptr<Backend>> folder_backend(const std::string& data) {
    if (!std::filesystem::exists(data))
        return Error{Code::kResourceDoesNotExist, "there is no folder " + data};
    Result<std::unique_ptr<LocalServer>> local = LocalServer::open({.data = data});
    if (local)
        return std::unique_ptr<Backend>(
            std::make_unique<LocalBackend>(std::move(local).value(), data));
    if (local.error().code != Code::kResourceConflict) return local.error();
    const std::optional<std::string> url = url_of_holder(data);
    if (!url) return local.error();
    const Result<void> checked = check_server(*url, kNamedServer_ms);
    if (checked) return placed_backend(*url, "the server at " + *url);
    const bool is_refused = checked.error().code == Code::kPermissionDenied;  // or not trusted
    return is_refused ? checked.error() : local.error();
}

}  // namespace

Result<std::unique_ptr<Backend>> remote_backend(const std::string& url) {
    return placed_backend(url, "the server at " + url);
}

std::unique_ptr<Backend> local_backend(LocalServer& server, std::string where) {
    return std::make_unique<LocalBackend>(server, std::move(where));
}

Result<void> check_server(const std::string& url, int timeout_ms) {
    TUNE_TRY(client, tracker::create_client({.url = url, .timeout_ms = timeout_ms, .retries = 0}));
    const Result<Json> studies = client->get(kStudies);
    const bool is_refused = !studies && (studies.error().code == Code::kUnauthenticated ||
                                         studies.error().code == Code::kPermissionDenied ||
                                         studies.error().code == Code::kBadRequest);  // no HTTPS
    if (is_refused) return studies.error();
    if (studies && studies->is_object() && studies->contains("studies")) return {};
    return Error{
        Code::kTemporarilyUnavailable,
        "no tune server answers at " + url + "; start it with `tune server`, or omit --server"};
}

Result<std::unique_ptr<Backend>> find_backend(const std::optional<std::string>& server,
                                              const std::optional<std::string>& data) {
    if (server) {
        TUNE_TRY_VOID(check_server(*server, kNamedServer_ms));
        return remote_backend(*server);
    }
    if (data) return folder_backend(*data);
    constexpr int kGuess_ms = 2000;
    if (check_server(kDefaultServer, kGuess_ms)) {
        std::string place = std::string("the server at ") + kDefaultServer;
        if (std::filesystem::exists(kDefaultData))
            place += std::string("; --data ") + kDefaultData + " looks in the folder";
        return placed_backend(kDefaultServer, std::move(place));
    }
    if (std::filesystem::exists(kDefaultData)) return folder_backend(kDefaultData);
    return Error{Code::kResourceDoesNotExist, std::string("no server answers at ") +
                                                  kDefaultServer + " and there is no folder " +
                                                  kDefaultData +
                                                  "; name one with --server URL or --data DIR"};
}

std::string study_path(std::string_view study, std::string_view rest) {
    return std::string(kStudies) + "/" + percent_encode(study, false) + std::string(rest);
}

}  // namespace tune::cli
