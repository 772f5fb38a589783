// The fast way may only ever say "not mine": whatever is unusual (other spellings, numbers as text,
// missing fields, long fractions) goes to the general parser, which has MLflow's sentences. So a
// request means the same by either way; message_test.cc compares them.

#include "tracker/api/http/fast_parse.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "tracker/api/http/handlers.h"

namespace tune::tracker {
namespace {

namespace json = simdjson::ondemand;

/// This much is read in about 1 ms; more goes the slow way on a reader thread.
constexpr std::size_t kFastBytesMax = 1 << 20;

/// Each thread keeps its parser's buffers between requests.
json::parser& thread_parser() {
    thread_local json::parser parser;
    return parser;
}

bool read(json::value value, std::string& out) {
    std::string_view text;
    if (value.get_string().get(text)) return false;
    out = text;
    return true;
}

bool read(json::value value, std::int64_t& out) {
    return !value.get_int64().get(out);
}

/// simdjson 3.0.1 reads wrong values, and says nothing, where a fraction has more digits than its
/// 64-bit mantissa: 0.3333333333333333333333 as 0.0013. Fewer digits than this are safe.
constexpr std::ptrdiff_t kSafeDigitsMax = 18;

bool read_number(json::value value, double& out) {
    const std::string_view token = value.raw_json_token();
    if (value.get_double().get(out)) return false;
    const char* const end = std::find_if(token.begin(), token.end(), [](char c) {
        return (c < '0' || c > '9') && c != '.' && c != '-';
    });
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    if (std::count_if(token.begin(), end, is_digit) <= kSafeDigitsMax) return true;
    return std::from_chars(token.data(), token.data() + token.size(), out).ec == std::errc();
}

bool read(json::value value, double& out) {
    json::json_type type;
    if (value.type().get(type)) return false;
    if (type == json::json_type::number) return read_number(value, out);
    std::string_view text;
    if (type != json::json_type::string || value.get_string().get(text)) return false;
    if (text == "NaN") {
        out = std::numeric_limits<double>::quiet_NaN();
    } else if (text == "Infinity") {
        out = std::numeric_limits<double>::infinity();
    } else if (text == "-Infinity") {
        out = -std::numeric_limits<double>::infinity();
    } else {
        return false;
    }
    return true;
}

/// Which required fields of a metric have been seen.
struct MetricSeen {
    bool key = false;
    bool value = false;
    bool timestamp = false;
    [[nodiscard]] bool all() const { return key && value && timestamp; }
};

/// One field of a metric. False: not a form of the fast way.
bool read_metric_field(std::string_view name, json::value value, Metric& metric, MetricSeen& seen) {
    if (name == "key") return seen.key = read(value, metric.key) && !metric.key.empty();
    if (name == "value") return seen.value = read(value, metric.value);
    if (name == "timestamp") return seen.timestamp = read(value, metric.timestamp_ms);
    if (name == "step") return read(value, metric.step);
    if (name == "model_id") return read(value, metric.model_id);
    if (name == "dataset_name") return read(value, metric.dataset_name);
    if (name == "dataset_digest") return read(value, metric.dataset_digest);
    return name == "run_id" || name == "run_uuid";
}

bool read_metrics(json::value list, std::vector<Metric>& metrics) {
    json::array items;
    if (list.get_array().get(items)) return false;
    for (auto item : items) {
        json::object object;
        if (item.get_object().get(object)) return false;
        Metric& metric = metrics.emplace_back();
        MetricSeen seen;
        for (auto field : object) {
            std::string_view name;
            json::value value;
            if (field.unescaped_key().get(name) || field.value().get(value)) return false;
            if (!read_metric_field(name, value, metric, seen)) return false;
        }
        if (!seen.all()) return false;
    }
    return true;
}

template <class Pair>
bool read_pairs(json::value list, std::vector<Pair>& pairs) {
    json::array items;
    if (list.get_array().get(items)) return false;
    for (auto item : items) {
        json::object object;
        if (item.get_object().get(object)) return false;
        Pair& pair = pairs.emplace_back();
        for (auto field : object) {
            std::string_view name;
            json::value value;
            if (field.unescaped_key().get(name) || field.value().get(value)) return false;
            if (name == "key") {
                if (!read(value, pair.key)) return false;
            } else if (name != "value" || !read(value, pair.value)) {
                return false;
            }
        }
        if (pair.key.empty()) return false;
    }
    return true;
}

/// Calls `visit(name, value)` for each field of the body's object; true if all were accepted and
/// nothing follows.
template <class Visit>
bool for_each_field(std::string& body, Visit visit) {
    body.reserve(body.size() + simdjson::SIMDJSON_PADDING);
    json::document document;
    if (thread_parser()
            .iterate(simdjson::padded_string_view(body.data(), body.size(), body.capacity()))
            .get(document))
        return false;
    json::object object;
    if (document.get_object().get(object)) return false;
    for (auto field : object) {
        std::string_view name;
        json::value value;
        if (field.unescaped_key().get(name) || field.value().get(value)) return false;
        if (!visit(name, value)) return false;
    }
    // Anything behind the object is an error, which the slow way names.
    const char* rest = nullptr;
    return document.current_location().get(rest) == simdjson::OUT_OF_BOUNDS;
}

}  // namespace

bool takes_fast_way(const Request& request) {
    // A request that is made once per key needs what write_handler does with it.
    return request.body.size() <= kFastBytesMax &&
           request.header("Content-Type").starts_with("application/json") &&
           request.header(kIdempotencyKey).data() == nullptr;
}

std::optional<LogMetric> parse_log_metric_fast(std::string& body) {
    LogMetric command;
    std::string old_id;
    MetricSeen seen;
    const bool ok = for_each_field(body, [&](std::string_view name, json::value value) {
        // Given but empty is refused, whatever the old name says: the slow way has the sentence.
        if (name == "run_id") return read(value, command.run_id) && !command.run_id.empty();
        if (name == "run_uuid") return read(value, old_id);
        return read_metric_field(name, value, command.metric, seen);
    });
    if (command.run_id.empty()) command.run_id = std::move(old_id);
    if (!ok || !seen.all() || command.run_id.empty()) return std::nullopt;
    return command;
}

std::optional<LogBatch> parse_log_batch_fast(std::string& body) {
    LogBatch command;
    const bool ok = for_each_field(body, [&](std::string_view name, json::value value) {
        if (name == "run_id") return read(value, command.run_id);
        if (name == "metrics") return read_metrics(value, command.metrics);
        if (name == "params") return read_pairs(value, command.params);
        if (name == "tags") return read_pairs(value, command.tags);
        return false;
    });
    if (!ok || command.run_id.empty()) return std::nullopt;
    return command;
}

}  // namespace tune::tracker
