// Patterns without parameters are found by one look-up and come first, so a literal path wins over
// a parameter whatever the order of the table; the others are tried in that order. A route that
// could never be reached, because the same one is there already, ends the program when it is added.

#include "tracker/api/http/router.h"

#include <algorithm>
#include <mutex>

#include "base/check.h"
#include "base/text/text.h"

namespace tune::tracker {
namespace {

bool is_parameter(std::string_view segment) {
    return segment.size() > 2 && segment.front() == '{' && segment.back() == '}' &&
           segment.find('/') == std::string_view::npos;
}

bool is_rest(std::string_view segment) {
    return is_parameter(segment) && segment.ends_with("...}");
}

std::string_view parameter_name(std::string_view segment) {
    return segment.substr(1, segment.size() - (is_rest(segment) ? 5 : 2));
}

/// Cuts the text up to the next '/' off `path`.
std::string_view take_segment(std::string_view& path) {
    const std::size_t slash = path.find('/');
    const std::string_view segment = path.substr(0, slash);
    path = slash == std::string_view::npos ? std::string_view{} : path.substr(slash + 1);
    return segment;
}

/// Whether `path` has the shape of `pattern`; both begin with '/'.
bool matches(std::string_view pattern, std::string_view path, Fields* parameters) {
    pattern.remove_prefix(1);
    path.remove_prefix(1);
    for (;;) {
        if (is_rest(pattern)) {
            if (parameters) parameters->emplace_back(parameter_name(pattern), path);
            return true;
        }
        const bool pattern_goes_on = pattern.find('/') != std::string_view::npos;
        const bool path_goes_on = path.find('/') != std::string_view::npos;
        const std::string_view want = take_segment(pattern);
        const std::string_view have = take_segment(path);
        if (is_parameter(want)) {
            if (have.empty()) return false;
            if (parameters) parameters->emplace_back(parameter_name(want), have);
        } else if (want != have) {
            return false;
        }
        if (pattern_goes_on != path_goes_on) return false;
        if (!pattern_goes_on) return true;
    }
}

bool is_api_path(std::string_view path) {
    return path == "/api" || path.starts_with("/api/") || path == "/ajax-api" ||
           path.starts_with("/ajax-api/");
}

/// One file of the artifact proxy: what MLflow streams itself, without its web framework.
bool is_artifact_path(std::string_view path) {
    return path.starts_with("/api/2.0/mlflow-artifacts/artifacts/") ||
           path.starts_with("/ajax-api/2.0/mlflow-artifacts/artifacts/");
}

/// A page of another site can send a form or plain text without asking; what starts or changes what
/// runs must say that it is JSON, which such a page cannot. MLflow's routes have their own check.
Result<void> check_content_type(const Request& request, const Route& route) {
    if (route.body != Body::kJson || route.access.access() <= Access::kWrite) return {};
    const std::string_view type = request.header("Content-Type");
    const std::string_view name = trimmed(type.substr(0, type.find(';')));
    if (lower_ascii(name) == "application/json") return {};
    return Error{Code::kInvalidParameterValue,
                 type.empty() ? "Bad Request. Content-Type header is missing."
                              : "Bad Request. Content-Type must be one of ['application/json']."};
}

void note_allowed(std::string& allow, Method method) {
    if (allow.find(method_name(method)) != std::string::npos) return;
    if (!allow.empty()) allow += ", ";
    allow += method_name(method);
}

/// An upload takes its time: who may write at its beginning may have lost that by its end.
class FencedSink final : public BodySink {
public:
    FencedSink(std::unique_ptr<BodySink> sink, std::shared_ptr<const Request> request)
        : sink_(std::move(sink)), request_(std::move(request)) {}

    void write(std::string_view chunk, std::function<void(Result<void>)> done) override {
        sink_->write(chunk, std::move(done));
    }
    void finish(Responder respond) override {
        if (const Result<void> may = check_may_write(request_->principal); !may) {
            sink_.reset();
            return respond(error_response(may.error()));
        }
        sink_->finish(std::move(respond));
    }

private:
    std::unique_ptr<BodySink> sink_;
    std::shared_ptr<const Request> request_;
};

/// An upload whose sender is found out while its first bytes wait. What it opens is opened then.
class AwaitedSink final : public BodySink {
public:
    AwaitedSink(const Authenticator& authenticator, const Needs& needs,
                std::shared_ptr<Request> request, const SinkOpener& open_sink)
        : authenticator_(authenticator),
          needs_(needs),
          state_(std::make_shared<State>(std::move(request), open_sink)) {}

    ~AwaitedSink() override { state_->abandon(); }
    AwaitedSink(const AwaitedSink&) = delete;
    AwaitedSink& operator=(const AwaitedSink&) = delete;

    void write(std::string_view chunk, std::function<void(Result<void>)> done) override {
        when_open([chunk, done](Result<std::shared_ptr<BodySink>> sink) {
            if (!sink) return done(sink.error());
            (*sink)->write(chunk, done);
        });
    }
    void finish(Responder respond) override {
        when_open([respond](Result<std::shared_ptr<BodySink>> sink) {
            if (!sink) return respond(error_response(sink.error()));
            (*sink)->finish(respond);
        });
    }

private:
    /// Outlives the sink of a client that goes away while it is found out who that was.
    class State {
    public:
        State(std::shared_ptr<Request> sent, SinkOpener opener)
            : request(std::move(sent)), open_sink_(std::move(opener)) {}

        /// The sink, or nothing before open().
        std::shared_ptr<BodySink> sink() {
            const std::lock_guard lock(mutex_);
            return sink_;
        }
        Result<std::shared_ptr<BodySink>> open() {
            TUNE_TRY(opened, open_sink_(request));
            const std::lock_guard lock(mutex_);
            if (is_abandoned_) return Error{Code::kTemporarilyUnavailable, "The client is gone."};
            sink_ = std::move(opened);
            return sink_;
        }
        void abandon() {
            std::shared_ptr<BodySink> dropped;  // outlives the lock
            const std::lock_guard lock(mutex_);
            is_abandoned_ = true;
            dropped.swap(sink_);
        }

        const std::shared_ptr<Request> request;

    private:
        const SinkOpener open_sink_;
        std::mutex mutex_;
        std::shared_ptr<BodySink> sink_;
        bool is_abandoned_ = false;
    };

    void when_open(std::function<void(Result<std::shared_ptr<BodySink>>)> next) {
        if (auto sink = state_->sink()) return next(std::move(sink));
        authenticator_.admit(state_->request, needs_, [state = state_, next](Result<void> may) {
            if (!may) return next(may.error());
            next(state->open());
        });
    }

    const Authenticator& authenticator_;
    const Needs needs_;
    const std::shared_ptr<State> state_;
};

Handler fenced(Handler handler) {
    return [handler = std::move(handler)](std::shared_ptr<Request> request, Responder respond) {
        if (const Result<void> may = check_may_write(request->principal); !may)
            return respond(error_response(may.error()));
        handler(std::move(request), std::move(respond));
    };
}

SinkOpener fenced(SinkOpener open_sink) {
    return [open_sink = std::move(open_sink)](
               std::shared_ptr<Request> request) -> Result<std::unique_ptr<BodySink>> {
        TUNE_TRY_VOID(check_may_write(request->principal));
        TUNE_TRY(sink, open_sink(request));
        return std::unique_ptr<BodySink>(
            std::make_unique<FencedSink>(std::move(sink), std::move(request)));
    };
}

}  // namespace

bool is_write(const Route& route) {
    return route.access.is_write();
}

void Router::add(Route route) {
    TUNE_CHECK(route.pattern.starts_with('/'), "a route's pattern begins with '/'");
    TUNE_CHECK(route.body == Body::kStream ? static_cast<bool>(route.open_sink)
                                           : static_cast<bool>(route.handler),
               "a stream route needs open_sink, any other a handler");
    const std::size_t rest = route.pattern.find("...}");
    TUNE_CHECK(rest == std::string::npos || rest + 4 == route.pattern.size(),
               "{name...} stands last");
    const std::size_t index = routes_.size();
    if (route.pattern.find('{') == std::string::npos) {
        std::vector<std::size_t>& methods = exact_[route.pattern];
        for (const std::size_t other : methods)
            TUNE_CHECK(routes_[other].method != route.method, "this route exists already");
        methods.push_back(index);
    } else {
        for (const std::size_t other : with_parameters_)
            TUNE_CHECK(
                routes_[other].method != route.method || routes_[other].pattern != route.pattern,
                "this route exists already");
        with_parameters_.push_back(index);
    }
    if (is_write(route) && route.handler) route.handler = fenced(std::move(route.handler));
    if (is_write(route) && route.open_sink) route.open_sink = fenced(std::move(route.open_sink));
    const Access access = route.access.access();
    if (access != Access::kOpen && access != Access::kByUrl) {
        if (route.handler) route.handler = admitted(route.access, std::move(route.handler));
        if (route.open_sink) route.open_sink = admitted(route.access, std::move(route.open_sink));
    }
    routes_.push_back(std::move(route));
}

void Router::add_api(int version, Route route) {
    const std::string rest = "/" + std::to_string(version) + ".0" + route.pattern;
    Route ajax = route;
    ajax.pattern = "/ajax-api" + rest;
    route.pattern = "/api" + rest;
    add(std::move(route));
    add(std::move(ajax));
}

void Router::set_fallback(Handler handler) {
    fallback_ = Route{Method::kGet, Access::kOpen,  "/{path...}",
                      Body::kNone,  "The web page", std::move(handler)};
}

Response Router::refusal_of(const Error& error, const Request& request) const {
    Response response = error_response(error);
    if (error.code != Code::kUnauthenticated) return response;
    const bool is_from_page = !request.header("Sec-Fetch-Site").empty();
    const std::string_view challenge = authenticator_ != nullptr
                                           ? authenticator_->challenge(is_from_page)
                                           : "Bearer realm=\"tune\"";
    response.headers.emplace_back("WWW-Authenticate", challenge);
    return response;
}

Handler Router::admitted(Needs needs, Handler handler) const {
    return [this, needs, handler = std::move(handler)](std::shared_ptr<Request> request,
                                                       Responder respond) {
        if (authenticator_ == nullptr) return handler(std::move(request), std::move(respond));
        if (const auto may = authenticator_->admit_now(*request, needs)) {
            if (!*may) return respond(refusal_of(may->error(), *request));
            return handler(std::move(request), std::move(respond));
        }
        const auto go_on = [this, &handler, request,
                            respond = std::move(respond)](const Result<void>& may) {
            if (!may) return respond(refusal_of(may.error(), *request));
            handler(request, respond);
        };
        authenticator_->admit(request, needs, go_on);
    };
}

SinkOpener Router::admitted(Needs needs, SinkOpener open_sink) const {
    return [this, needs, open_sink = std::move(open_sink)](
               std::shared_ptr<Request> request) -> Result<std::unique_ptr<BodySink>> {
        if (authenticator_ == nullptr) return open_sink(std::move(request));
        if (const auto may = authenticator_->admit_now(*request, needs)) {
            if (!*may) return may->error();
            return open_sink(std::move(request));
        }
        return std::unique_ptr<BodySink>(
            std::make_unique<AwaitedSink>(*authenticator_, needs, std::move(request), open_sink));
    };
}

Router::Match Router::match(Method method, std::string_view path) const {
    Match found;
    if (!path.starts_with('/')) return found;
    const Method wanted = method == Method::kHead ? Method::kGet : method;
    if (const auto exact = exact_.find(path); exact != exact_.end()) {
        for (const std::size_t index : exact->second) {
            if (routes_[index].method == wanted) {
                found.route = &routes_[index];
                return found;
            }
        }
        for (const std::size_t index : exact->second)
            note_allowed(found.allow, routes_[index].method);
    }
    for (const std::size_t index : with_parameters_) {
        const Route& route = routes_[index];
        if (route.method == wanted) {
            if (!matches(route.pattern, path, nullptr)) continue;
            matches(route.pattern, path, &found.parameters);
            found.route = &route;
            return found;
        }
        if (matches(route.pattern, path, nullptr)) note_allowed(found.allow, route.method);
    }
    return found;
}

void Router::strip_prefix(Request& request) const {
    if (prefix_.empty()) return;
    std::string& path = request.path;
    if (path.starts_with(prefix_) && path.substr(prefix_.size()).starts_with('/')) {
        path.erase(0, prefix_.size());
        return;
    }
    if (path == prefix_) {
        path = "/";
        return;
    }
    const Method method = request.method == Method::kHead ? Method::kGet : request.method;
    const bool streams = method == Method::kGet || method == Method::kPut;
    if (!streams || !is_artifact_path(path)) path.clear();
}

void Router::identify(Request& request) const {
    if (authenticator_ == nullptr || !std::holds_alternative<AnonymousPrincipal>(request.principal))
        return;
    request.principal = authenticator_->authenticate(
        {.authorization = request.header("Authorization"), .cookie = request.header("Cookie")});
}

Result<void> Router::check_access(const Request& request, const Route& route) const {
    const Access access = route.access.access();
    if (access == Access::kOpen) return {};
    if (authenticator_ == nullptr)
        return tracker::check_access(request.principal, access, kAnonymousOnLoopback);
    return authenticator_->check_access(request.principal, access);
}

const Route* Router::resolve(Request& request, Response& refusal) const {
    Match found = match(request.method, request.path);
    if (found.route) {
        request.parameters = std::move(found.parameters);
        identify(request);
        Result<void> may = check_access(request, *found.route);
        if (may) may = check_content_type(request, *found.route);
        if (may) return found.route;
        refusal = refusal_of(may.error(), request);
        return nullptr;
    }
    if (!found.allow.empty()) {
        if (found.allow.find("GET") != std::string::npos) note_allowed(found.allow, Method::kHead);
        note_allowed(found.allow, Method::kOptions);
        if (request.method == Method::kOptions) {
            refusal.status = 204;
        } else {
            refusal = error_response({Code::kBadRequest, std::string(method_name(request.method)) +
                                                             " is not a method of " + request.path +
                                                             " (it has " + found.allow + ")."});
            refusal.status = 405;
        }
        refusal.headers.emplace_back("Allow", found.allow);
        return nullptr;
    }
    const bool reads = request.method == Method::kGet || request.method == Method::kHead;
    if (fallback_ && reads && !request.path.empty() && !is_api_path(request.path))
        return &*fallback_;
    refusal = error_response({Code::kEndpointNotFound,
                              "There is no route " + std::string(method_name(request.method)) +
                                  " " + (request.path.empty() ? request.raw_path : request.path) +
                                  " on this server."});
    return nullptr;
}

bool Router::needs_proof(const Request& request, const Route& route) const {
    const Access access = route.access.access();
    return authenticator_ != nullptr && access != Access::kOpen && access != Access::kByUrl &&
           std::holds_alternative<ClaimedPrincipal>(request.principal);
}

void Router::prove(const std::shared_ptr<Request>& request, const Route& route,
                   std::function<void(std::optional<Response>)> done) const {
    authenticator_->prove(request, route.access.access(),
                          [this, request, done = std::move(done)](const Result<void>& proved) {
                              if (proved) return done(std::nullopt);
                              done(refusal_of(proved.error(), *request));
                          });
}

Result<void> Router::check_metrics(const Request& request, std::string_view run_id,
                                   std::span<const Metric> metrics) const {
    if (authenticator_ == nullptr) return {};
    return authenticator_->check_metrics(request.principal, run_id, metrics);
}

void Router::dispatch(std::shared_ptr<Request> request, Responder respond) const {
    strip_prefix(*request);
    Response refusal;
    const Route* route = resolve(*request, refusal);
    if (!route) {
        respond(std::move(refusal));
        return;
    }
    TUNE_CHECK(route->body != Body::kStream, "dispatch() is for routes without a stream");
    route->handler(std::move(request), std::move(respond));
}

}  // namespace tune::tracker
