// Whole requests through the router over a real store in memory: a line "METHOD /path?query", then
// the body. Properties: one answer, never a 5xx other than "not supported", JSON where it says so.

#include <unistd.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/clock.h"
#include "base/text/percent.h"
#include "tests/fuzz/fuzz.h"
#include "tracker/api/app.h"
#include "tracker/api/http/url.h"

namespace tune::fuzz {
namespace {

using namespace tune::tracker;

struct Application {
    Application() {
        StoreOptions options;
        options.directory = folder.path();
        store = Store::open(options).value();
        artifacts = ArtifactStore::open(folder.path() / "artifacts").value();
        add_tracking_routes(router, {*store, *artifacts, hub}, {});
    }
    ~Application() {
        store->stop();
        artifacts.reset();
        store.reset();
    }

    Response answer(const std::shared_ptr<Request>& request) {
        struct Waiting {
            std::mutex mutex;
            std::condition_variable answered;
            std::optional<Response> response;
        };
        auto waiting = std::make_shared<Waiting>();
        router.dispatch(request, [waiting](Response given) {
            const std::lock_guard lock(waiting->mutex);
            FUZZ_CHECK(!waiting->response);  // a responder answers once
            waiting->response = std::move(given);
            waiting->answered.notify_all();
        });
        std::unique_lock lock(waiting->mutex);
        waiting->answered.wait(lock, [&] { return waiting->response.has_value(); });
        return std::move(*waiting->response);
    }

    Folder folder;
    SystemClock clock;
    EventHub hub{clock};
    std::unique_ptr<Store> store;
    std::unique_ptr<ArtifactStore> artifacts;
    Router router;
};

std::optional<Method> method_of(std::string_view name) {
    for (const Method method : {Method::kGet, Method::kPost, Method::kPut, Method::kPatch,
                                Method::kDelete, Method::kHead, Method::kOptions})
        if (method_name(method) == name) return method;
    return std::nullopt;
}

/// Nothing if the first line is no request, or one of a route that takes a stream.
std::shared_ptr<Request> request_of(const Router& router, std::string_view text) {
    const std::string_view line = take_line(text);
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) return nullptr;
    const std::optional<Method> method = method_of(line.substr(0, space));
    if (!method) return nullptr;
    const std::string_view target = line.substr(space + 1);
    const std::size_t question = target.find('?');
    auto request = std::make_shared<Request>();
    request->method = *method;
    request->principal = OwnerPrincipal{};
    request->raw_path = std::string(target.substr(0, question));
    request->path = percent_decode(request->raw_path);
    if (question != std::string_view::npos)
        request->query = parse_query(target.substr(question + 1));
    request->headers = {{"Content-Type", "application/json"}};
    request->body = std::string(text);
    const Router::Match match = router.match(*method, request->path);
    if (match.route && match.route->body == Body::kStream) return nullptr;
    return request;
}

}  // namespace
}  // namespace tune::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tune::fuzz;
    static Application application;
    const auto request = request_of(application.router, text_of(data, size));
    if (!request) return 0;
    const tune::tracker::Response response = application.answer(request);
    FUZZ_CHECK(response.status < 500 || response.status == 501);
    if (response.content_type == "application/json")
        FUZZ_CHECK(tune::parse_json(response.body).has_value());
    return 0;
}
