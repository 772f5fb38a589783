#pragma once
// The whole tracking application over a real store in a temporary folder, without the network.

#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/id.h"
#include "base/text/percent.h"
#include "tracker/api/app.h"
#include "tracker/api/http/url.h"

namespace tune::tracker {

struct Answer {
    int status = 0;
    Json json;
    Response response;

    [[nodiscard]] std::string message() const { return json.value("message", ""); }
    [[nodiscard]] std::string code() const { return json.value("error_code", ""); }
};

class TestApi {
public:
    TestApi() {
        folder = std::filesystem::temp_directory_path() / ("api-" + random_hex(8));
        StoreOptions options;
        options.directory = folder;
        store = Store::open(options).value();
        artifacts = ArtifactStore::open(folder / "artifacts").value();
        add_tracking_routes(router, {*store, *artifacts, hub}, {});
    }
    ~TestApi() {
        store->stop();
        artifacts.reset();
        store.reset();
        std::filesystem::remove_all(folder);
    }

    Answer send(std::shared_ptr<Request> request) {
        std::mutex mutex;
        std::condition_variable answered;
        std::optional<Response> response;
        router.dispatch(std::move(request), [&](Response given) {
            const std::lock_guard lock(mutex);
            response = std::move(given);
            answered.notify_all();
        });
        std::unique_lock lock(mutex);
        answered.wait(lock, [&] { return response.has_value(); });
        Answer answer{response->status, Json(), std::move(*response)};
        if (answer.response.content_type == "application/json")
            answer.json = parse_json(answer.response.body).value();
        return answer;
    }

    /// `path` may hold a query; it is taken as encoded.
    Answer call(Method method, std::string_view path, std::string body = "") {
        auto request = std::make_shared<Request>();
        request->method = method;
        const std::size_t question = path.find('?');
        request->raw_path = path.substr(0, question);
        request->path = percent_decode(request->raw_path);
        if (question != std::string_view::npos)
            request->query = parse_query(path.substr(question + 1));
        request->headers = {{"Content-Type", "application/json"}};
        request->body = std::move(body);
        return send(std::move(request));
    }
    Answer get(std::string_view path) {
        return call(Method::kGet, "/api/2.0/mlflow/" + std::string(path));
    }
    Answer post(std::string_view path, const Json& body) {
        return call(Method::kPost, "/api/2.0/mlflow/" + std::string(path), body.dump());
    }

    std::string create_run(const std::string& experiment_id = "0") {
        return post("runs/create", {{"experiment_id", experiment_id}})
            .json["run"]["info"]["run_id"]
            .get<std::string>();
    }

    std::filesystem::path folder;
    SystemClock clock;
    EventHub hub{clock};
    std::unique_ptr<Store> store;
    std::unique_ptr<ArtifactStore> artifacts;
    Router router;
};

}  // namespace tune::tracker
