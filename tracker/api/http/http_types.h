#pragma once
// Requests and responses as handlers see them: plain C++, nothing of the network library. The HTTP
// server (tracker/http) fills and sends them; tests call handlers with them directly.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/system/unique_fd.h"
#include "tracker/api/http/principal.h"
#include "tracker/store/permissions/permission_types.h"

namespace tune::tracker {

class BodySource;
class EventSubscription;

enum class Method { kGet, kPost, kPut, kPatch, kDelete, kHead, kOptions };

/// "GET", "POST", ...
[[nodiscard]] std::string_view method_name(Method method);

/// Name and value, in the order in which they stand on the wire.
using Fields = std::vector<std::pair<std::string, std::string>>;

/// One request, complete except for the body of a `Body::kStream` route. A handler may keep the
/// shared_ptr it was given; nothing else refers to it.
struct Request {
    Method method = Method::kGet;
    /// Percent-decoded exactly once, without the query. May hold any byte, also '/' that was sent
    /// as %2F and `..`.
    std::string path;
    /// As sent, without the query.
    std::string raw_path;
    /// Decoded ('+' is a space), in order; a name may occur several times.
    Fields query;
    Fields headers;
    /// What the `{name}` parts of the route's pattern matched, decoded.
    Fields parameters;
    /// Decompressed. Empty for Body::kNone and Body::kStream.
    std::string body;
    /// The peer's IP address as text.
    std::string remote_address;
    /// It came through TLS that ends in this server.
    bool is_encrypted = false;
    /// Who asks; filled in by the router when it finds the route.
    Principal principal = {};
    /// Whose eyes a search has; nothing: it sees all. Filled in before the handler runs.
    std::optional<Viewer> viewer = {};
    /// For an answer that goes on, of who could lose their rights meanwhile: whether they are still
    /// who they were, with the same credential. May read the store; from any thread.
    std::function<bool()> stands = {};
    /// Who asks was let in to make what the request names, which there was not: it must not be
    /// given what somebody else has made since.
    bool is_new = false;

    /// The first header of that name (any case), or empty.
    [[nodiscard]] std::string_view header(std::string_view name) const;
    /// The path parameter, or empty if the pattern has none of that name.
    [[nodiscard]] const std::string& parameter(std::string_view name) const;
    /// The first query value of that name.
    [[nodiscard]] std::optional<std::string_view> query_value(std::string_view name) const;
    /// All query values of that name, in order.
    [[nodiscard]] std::vector<std::string_view> query_values(std::string_view name) const;
};

/// Bytes that outlive the response (embedded assets): sent without a copy.
struct StaticBody {
    std::string_view bytes;
};

/// A regular file, sent from its descriptor. The server answers Range and If-Range (206, 416) and
/// If-None-Match (304) from `etag` of the response and `size_bytes`.
struct FileBody {
    std::shared_ptr<const UniqueFd> file;
    std::uint64_t size_bytes = 0;
};

/// The connection becomes a stream of server-sent events until either side closes it.
struct EventStreamBody {
    std::shared_ptr<EventSubscription> subscription;
};

/// A body of unknown length, sent in chunks as the client takes them (body_source.h); the
/// connection ends with it.
struct StreamBody {
    std::shared_ptr<BodySource> source;
};

using SpecialBodyVariant =
    std::variant<std::monostate, StaticBody, FileBody, EventStreamBody, StreamBody>;

/// One of these, or none. Its special members are compiled once, in http_types.cc, and not in each
/// file that moves a Response.
struct SpecialBody : SpecialBodyVariant {
    using SpecialBodyVariant::SpecialBodyVariant;
    SpecialBody();
    SpecialBody(const SpecialBody&);
    SpecialBody(SpecialBody&&) noexcept;
    SpecialBody& operator=(const SpecialBody&);
    SpecialBody& operator=(SpecialBody&&) noexcept;
    ~SpecialBody();
};

struct Response {
    int status = 200;
    /// Empty: no Content-Type is sent.
    std::string content_type;
    /// The body, unless `special` holds one.
    std::string body;
    /// More headers. Content-Length, Connection, Date and the security headers are the server's.
    Fields headers;
    /// Quoted, e.g. "\"a1b2\""; empty: none. If-None-Match is answered from it.
    std::string etag;
    SpecialBody special;
};

/// Gives the answer. Call it exactly once, from any thread, now or later (long-poll). The answer of
/// a connection that is gone, or of a server that has stopped, is dropped.
using Responder = std::function<void(Response)>;

/// Runs on a network thread and must not block: it computes, or hands the work to a queue and lets
/// the completion call the responder.
using Handler = std::function<void(std::shared_ptr<Request>, Responder)>;

/// Receives the body of a Body::kStream route as it arrives. The server calls write() for the next
/// chunk only after the last one's `done`, which is the back-pressure on the client. Destroyed
/// without finish(): the client went away or a write failed; whatever was begun must vanish.
class BodySink {
public:
    virtual ~BodySink() = default;
    /// `chunk` stays valid until `done` is called, once, from any thread. An error ends the upload
    /// and becomes the answer. Runs on a network thread and must not block.
    virtual void write(std::string_view chunk, std::function<void(Result<void>)> done) = 0;
    /// The whole body has arrived: make it visible and answer. Called once, after the last `done`.
    virtual void finish(Responder respond) = 0;
};

/// Opens the sink for one upload; headers, query and parameters are there. Runs on a network thread
/// and must not block. An error is answered at once, before the client sends its body when it asked
/// with `Expect: 100-continue`.
using SinkOpener = std::function<Result<std::unique_ptr<BodySink>>(std::shared_ptr<Request>)>;

/// What a route expects after the headers: nothing (a body is read up to the JSON limit and
/// dropped into `Request::body`, since clients send DELETE and GET with one), JSON of at most
/// kJsonBodyBytesMax, or a stream of any length.
enum class Body { kNone, kJson, kStream };

/// `value` as application/json.
[[nodiscard]] Response json_response(const Json& value, int status = 200);

/// JSON text that is already there.
[[nodiscard]] Response json_text_response(std::string text, int status = 200);

/// MLflow's error body {"error_code", "message"[, "sqlstate", "error_class"]} with the status of
/// the code.
[[nodiscard]] Response error_response(const Error& error);

[[nodiscard]] Response text_response(std::string text, int status = 200);

}  // namespace tune::tracker
