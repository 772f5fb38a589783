// The parsers of MLflow's messages. Properties: the fast parsers agree with the slow way on what
// they take; no reading of any field crashes; errors are MLflow's.

#include <nlohmann/json.hpp>

#include <cmath>

#include "tests/fuzz/fuzz.h"
#include "tracker/api/http/fast_parse.h"
#include "tracker/api/http/message.h"
#include "tracker/api/http/url.h"

namespace tune::fuzz {
namespace {

using namespace tune::tracker;

Request request_of(std::string_view body) {
    Request request;
    request.method = Method::kPost;
    request.headers = {{"Content-Type", "application/json"}};
    request.body = std::string(body);
    return request;
}

bool same(const Metric& a, const Metric& b) {
    const bool same_value = a.value == b.value || (std::isnan(a.value) && std::isnan(b.value));
    return same_value && a.key == b.key && a.timestamp_ms == b.timestamp_ms && a.step == b.step &&
           a.model_id == b.model_id && a.dataset_name == b.dataset_name &&
           a.dataset_digest == b.dataset_digest;
}

template <class T>
void check_error(const Result<T>& result) {
    if (result) return;
    FUZZ_CHECK(result.error().code == Code::kInvalidParameterValue);
    FUZZ_CHECK(!result.error().message.empty());
}

void read_all_fields(const Message& message) {
    for (const char* name : {"run_id", "key", "value", "metrics", "order_by"}) {
        check_error(message.text(name));
        check_error(message.optional_text(name));
        check_error(message.integer(name));
        check_error(message.required_number(name));
        check_error(message.boolean(name));
        check_error(message.texts(name));
        check_error(message.messages(name));
        check_error(message.message(name));
        check_error(message.view_type(name));
        check_error(message.run_status(name));
        check_error(message.model_status(name));
    }
    check_error(message.experiment_ids());
}

/// What the fast way took, the slow way takes too, with the same values.
void compare_metric(std::string_view text, const Message& message) {
    std::string body(text);
    const auto fast = parse_log_metric_fast(body);
    if (!fast) return;
    const auto run_id = message.run_id();
    const auto metric = message.metric();
    FUZZ_CHECK(run_id && *run_id == fast->run_id);
    FUZZ_CHECK(metric && same(*metric, fast->metric));
}

void compare_batch(std::string_view text, const Message& message) {
    std::string body(text);
    const auto fast = parse_log_batch_fast(body);
    if (!fast) return;
    const auto run_id = message.required_text("run_id");
    FUZZ_CHECK(run_id && *run_id == fast->run_id);
    const auto metrics = message.messages("metrics");
    FUZZ_CHECK(metrics && metrics->size() == fast->metrics.size());
    for (std::size_t i = 0; i < fast->metrics.size(); ++i) {
        const auto metric = (*metrics)[i].metric();
        FUZZ_CHECK(metric && same(*metric, fast->metrics[i]));
    }
    const auto params = message.params("params");
    FUZZ_CHECK(params && *params == fast->params);
    const auto tags = message.tags("tags");
    FUZZ_CHECK(tags && *tags == fast->tags);
}

}  // namespace
}  // namespace tune::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tune::fuzz;
    using namespace tune::tracker;
    const std::string_view text = text_of(data, size);
    Request query;
    query.query = parse_query(text);
    const auto of_query = Message::read(query);
    check_error(of_query);
    if (of_query) read_all_fields(*of_query);
    const Request request = request_of(text);
    const auto message = Message::read(request);
    check_error(message);
    std::string batch(text);
    std::string metric(text);
    if (!message) {
        FUZZ_CHECK(!parse_log_batch_fast(batch) && !parse_log_metric_fast(metric));
        return 0;
    }
    read_all_fields(*message);
    compare_metric(text, *message);
    compare_batch(text, *message);
    return 0;
}
