// GET /api/ui/events: live events for the web page, as server-sent events.
//
// A stream begins where the browser stopped: by Last-Event-ID after a broken connection, by a query
// after a reload. With users, each event is shown only if its experiment may be read at that
// moment. What was looked up is remembered until any grant or user changes (the store's permission
// epoch), so a busy stream costs no reads, and a grant that is taken away ends the view with the
// next event.

#include <charconv>

#include <map>
#include <mutex>

#include "tracker/api/app.h"
#include "tracker/api/http/handlers.h"
#include "tracker/store/permissions/read_permissions.h"

namespace tune::tracker {
namespace {

/// Chosen by the browser (run and experiment ids, study names); printable, of a sane length.
bool is_topic(std::string_view text) {
    constexpr std::size_t kTopicBytesMax = 600;
    if (text.empty() || text.size() > kTopicBytesMax) return false;
    for (const char c : text)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
    return true;
}

/// Topics are separated by commas, which no id or study name holds; several `topics` add up.
Result<std::vector<std::string>> read_topics(const Request& request) {
    std::vector<std::string> topics;
    for (std::string_view list : request.query_values("topics")) {
        while (!list.empty()) {
            const std::size_t comma = list.find(',');
            const std::string_view topic = list.substr(0, comma);
            list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
            if (topic.empty()) continue;
            if (!is_topic(topic))
                return Error{Code::kInvalidParameterValue, "This is not the name of a topic."};
            topics.emplace_back(topic);
        }
    }
    // Who may not see some of the topics may be left with none: a stream without events.
    if ((topics.empty() && !request.viewer) || topics.size() > EventHub::kTopicsPerReaderMax)
        return Error{Code::kInvalidParameterValue,
                     "Name 1 to " + std::to_string(EventHub::kTopicsPerReaderMax) +
                         " topics, e.g. ?topics=experiments,run:0123abcd"};
    return topics;
}

/// Where the browser stopped: the header after a broken connection, the query after a reload.
std::optional<std::uint64_t> read_last_event_id(const Request& request) {
    std::string_view text = request.header("Last-Event-ID");
    if (text.empty()) text = request.query_value("last_event_id").value_or("");
    std::uint64_t id = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size())
        return std::nullopt;
    return id;
}

/// What a user may read now. Remembered until a grant or a user changes.
class ReadableNow {
public:
    ReadableNow(const Store& store, const Viewer& viewer) : store_(store), viewer_(viewer) {}

    bool operator()(ExperimentId id, std::string_view type) {
        const Sight sight = sight_of(id);
        // What else the page hears of an experiment is about its runs.
        return sight == Sight::kAll || (sight == Sight::kNoRuns && type == "experiment");
    }

private:
    static constexpr std::size_t kKnownMax = 10'000;
    enum class Sight { kNothing, kNoRuns, kAll };

    Sight sight_of(ExperimentId id) {
        const std::lock_guard lock(mutex_);
        const std::uint64_t epoch = store_.permission_epoch();
        if (epoch != epoch_) known_.clear();
        epoch_ = epoch;
        if (const auto known = known_.find(id); known != known_.end()) return known->second;
        const Result<Sight> found =
            store_.snapshot([&](sqlite::Connection& connection) { return look(connection, id); });
        if (!found) return Sight::kNothing;
        if (known_.size() >= kKnownMax) known_.clear();
        known_.emplace(id, *found);
        return *found;
    }

    Result<Sight> look(sqlite::Connection& connection, ExperimentId id) const {
        if (viewer_.user_id != 0) {  // else an attempt
            TUNE_TRY(user, find_user(connection, viewer_.user_id));
            if (!user) return Sight::kNothing;
        }
        TUNE_TRY(visible, visible_experiments(connection, viewer_, {id}));
        if (visible.empty()) return Sight::kNothing;
        TUNE_TRY(of_runs, granted(connection, viewer_.user_id, ResourceType::kRun, kAnyResource));
        return of_runs == Permission::kDeny ? Sight::kNoRuns : Sight::kAll;
    }

    const Store& store_;
    const Viewer viewer_;
    std::mutex mutex_;
    std::uint64_t epoch_ = 0;
    std::map<ExperimentId, Sight> known_;
};

void open_stream(const TrackingParts& parts, const Request& request, const Responder& respond) {
    const Result<std::vector<std::string>> topics = read_topics(request);
    if (!topics) return respond(error_response(topics.error()));
    EventFilter filter;
    if (request.viewer)
        filter.shows = [readable = std::make_shared<ReadableNow>(parts.store, *request.viewer)](
                           std::int64_t experiment_id, std::string_view type) {
            return (*readable)(experiment_id, type);
        };
    filter.stands = request.stands;
    Response response;
    response.content_type = "text/event-stream";
    response.headers.emplace_back("Cache-Control", "no-store");
    response.headers.emplace_back("X-Accel-Buffering", "no");
    response.special = EventStreamBody{
        parts.hub.subscribe(*topics, read_last_event_id(request), std::move(filter))};
    respond(std::move(response));
}

}  // namespace

void add_event_routes(Router& router, TrackingParts parts) {
    router.add({Method::kGet,
                {Access::kRead, Subject::kTopics},
                "/api/ui/events",
                Body::kNone,
                "Server-sent events of ?topics=a,b; resumes after Last-Event-ID",
                [parts](const std::shared_ptr<Request>& request, const Responder& respond) {
                    if (!request->viewer && !request->stands)
                        return open_stream(parts, *request, respond);
                    // What was missed may have to be looked up.
                    const bool posted = parts.store.post_read(
                        [parts, request, respond] { open_stream(parts, *request, respond); });
                    if (!posted) respond(error_response(too_busy()));
                }});
}

}  // namespace tune::tracker
