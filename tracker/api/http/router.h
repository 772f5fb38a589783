#pragma once
// The one route table: dispatch, the list of routes in the documentation and the checklist of the
// contract tests all come from it.

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tracker/api/http/access.h"
#include "tracker/api/http/http_types.h"

namespace tune::tracker {

/// One method of one path. `pattern` is made of '/'-separated segments; `{name}` matches one
/// non-empty segment, a last `{name...}` matches the rest of the path, also empty, with its
/// slashes. Segments are compared after percent-decoding.
struct Route {
    Method method = Method::kGet;
    /// Who may use it, and whether it changes something.
    Needs access;
    std::string pattern;
    Body body = Body::kNone;
    std::string summary;
    /// For Body::kNone and Body::kJson.
    Handler handler;
    /// For Body::kStream.
    SinkOpener open_sink = {};
};

/// Whether the route may change something.
[[nodiscard]] bool is_write(const Route& route);

/// Filled before the server starts, then read from all threads without locks.
class Router {
public:
    Router() = default;
    Router(const Router&) = delete;  // routes may refer to it
    Router& operator=(const Router&) = delete;

    /// REQUIRES: no route with this method and pattern; a stream route has `open_sink`, any other
    /// has `handler`; `{name...}` stands last. Aborts otherwise. Whoever asks is admitted first
    /// (Authenticator::admit). A route that writes is fenced: its handler, its sink's opening and
    /// its sink's end answer check_may_write()'s error instead.
    void add(Route route);

    /// Adds the route under /api/N.0 and /ajax-api/N.0: `pattern` begins after that, e.g.
    /// "/mlflow/runs/get".
    void add_api(int version, Route route);

    /// Answers GET and HEAD of paths that no route knows and that are not under /api or /ajax-api:
    /// the web page. Without one they are 404.
    void set_fallback(Handler handler);

    /// From now on the server's paths begin with `prefix` ("/tracking"), which routes do not see.
    /// Routes that stream artifacts answer without it too, as MLflow 3.17.2's do.
    void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }

    /// Takes the prefix off the request's path. One without it gets the empty path, which no route
    /// has. Call it before resolve() and before anything that looks at the path.
    void strip_prefix(Request& request) const;

    /// Who tells requests apart; without one all are anonymous, and kAnonymousOnLoopback is what
    /// they may do. Outlives the router's use.
    /// REQUIRES: before the server starts.
    void set_authenticator(const Authenticator& authenticator) { authenticator_ = &authenticator; }

    /// Authenticator::check_metrics of the request's principal. Errors: the same.
    [[nodiscard]] Result<void> check_metrics(const Request& request, std::string_view run_id,
                                             std::span<const Metric> metrics) const;

    struct Match {
        /// nullptr: nothing matches.
        const Route* route = nullptr;
        Fields parameters;
        /// When nothing matches but the path is known: its methods, e.g. "GET, POST".
        std::string allow;
    };
    /// Exact patterns win over ones with parameters, then the earlier added one. HEAD is answered
    /// by GET's route. Cost: one hash look-up for an exact pattern, else O(routes with parameters).
    [[nodiscard]] Match match(Method method, std::string_view path) const;

    /// The route for `request`, with its parameters and principal put into the request, or nullptr
    /// with the answer in `refusal`: 404 or 405 as JSON, 401 or 403 for who may not use the route,
    /// 400 for a call of ours whose body is not said to be JSON. A principal that an in-process
    /// caller has put into the request stays. The page is the fallback's route.
    [[nodiscard]] const Route* resolve(Request& request, Response& refusal) const;

    /// Whether it has yet to be found out who sends the request to `route`, by prove().
    [[nodiscard]] bool needs_proof(const Request& request, const Route& route) const;
    /// Finds it out before the body is read: `done` is called once, from any thread, with the
    /// answer to who may not go on. REQUIRES: needs_proof().
    void prove(const std::shared_ptr<Request>& request, const Route& route,
               std::function<void(std::optional<Response> refusal)> done) const;

    /// Runs a request that has its body through strip_prefix(), resolve() and the handler: what the
    /// server does, for tests. REQUIRES: not a stream route.
    void dispatch(std::shared_ptr<Request> request, Responder respond) const;

    /// All routes in the order of their addition.
    [[nodiscard]] const std::vector<Route>& routes() const { return routes_; }

private:
    void identify(Request& request) const;
    [[nodiscard]] Handler admitted(Needs needs, Handler handler) const;
    [[nodiscard]] SinkOpener admitted(Needs needs, SinkOpener open_sink) const;
    [[nodiscard]] Response refusal_of(const Error& error, const Request& request) const;
    [[nodiscard]] Result<void> check_access(const Request& request, const Route& route) const;

    struct TransparentHash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const {
            return std::hash<std::string_view>{}(text);
        }
    };

    std::vector<Route> routes_;
    std::unordered_map<std::string, std::vector<std::size_t>, TransparentHash, std::equal_to<>>
        exact_;
    std::vector<std::size_t> with_parameters_;
    std::optional<Route> fallback_;
    std::string prefix_;
    const Authenticator* authenticator_ = nullptr;
};

}  // namespace tune::tracker
