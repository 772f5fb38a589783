#pragma once
// Requests with an Idempotency-Key: what makes two of them the same, and how those are made once
// whose change is not one command of a handler (write_handler does the same for those).

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tracker/api/http/http_types.h"
#include "tracker/store/store.h"

namespace tune::tracker {

/// What makes two requests the same: method, path, query, body, and the user who asks.
[[nodiscard]] std::string request_fingerprint(const Request& request);

/// The key of a request, or nothing. Errors: kInvalidParameterValue when it is not 1 to
/// kAnswerKeyBytesMax visible ASCII characters.
[[nodiscard]] Result<std::string> idempotency_key(const Request& request);

/// A recorded answer: 200 with Idempotent-Replayed.
[[nodiscard]] Response repeated_response(std::string text);

/// Whether this very request was answered before. REQUIRES: a thread that may wait for a read.
[[nodiscard]] bool is_repeat(const Store& store, const Request& request);

/// A change by a request, and what records its answer: with() puts the record into the transaction
/// of the change.
class AnswerRecord {
public:
    AnswerRecord() = default;  // of a request without a key: with() changes nothing
    AnswerRecord(std::string key, std::string fingerprint)
        : key_(std::move(key)), fingerprint_(std::move(fingerprint)) {}

    /// The commands of one transaction, the last of which records the answer beside its change.
    /// REQUIRES: there is one, and none is an Atomic.
    [[nodiscard]] std::vector<Command> with(std::vector<Command> commands, std::string text) const;

private:
    std::string key_;
    std::string fingerprint_;
};

/// Makes requests with a key once. A repeat that comes while the first is being made waits for its
/// answer. Thread-safe. Bounded by the connections that wait.
class Repeats : public std::enable_shared_from_this<Repeats> {
public:
    using Work = std::function<void(const AnswerRecord&, const Responder&)>;

    /// `store` outlives all answers.
    explicit Repeats(Store& store) : store_(store) {}

    /// Answers with what is recorded for the request, or runs `work`, which responds once and
    /// records its answer if it changes something. Without a key `work` runs at once, else on a
    /// reader thread: it must not block.
    void once(const std::shared_ptr<Request>& request, const Responder& respond, Work work);

private:
    struct Running {
        std::string fingerprint;
        std::vector<Responder> waiting;
    };
    void settle(const std::string& key, const Response& response);

    Store& store_;
    std::mutex mutex_;
    std::map<std::string, Running> running_;
};

}  // namespace tune::tracker
