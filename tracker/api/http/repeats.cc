// The record of an answer is written with the change it answers, so that a repeat, at the same
// moment, later or after a crash, finds either both or neither. Between the two lies the time in
// which the first request is being made: its repeats are kept beside it in memory, for to the store
// their key is still free.

#include "tracker/api/http/repeats.h"

#include "base/crypto/digest.h"
#include "base/text/hex.h"
#include "tracker/api/http/handlers.h"
#include "tracker/store/reads/read_answers.h"

namespace tune::tracker {
namespace {

/// However old the answer is, as long as the store has it: its clock is not known here.
Result<std::optional<std::string>> find_repeat(const Store& store, std::string_view key,
                                               std::string_view fingerprint) {
    constexpr std::int64_t kAnyAge_ms = 0;
    TUNE_TRY(known, store.snapshot([&](sqlite::Connection& connection) {
        return find_answer(connection, key, kAnyAge_ms);
    }));
    return answer_for(key, fingerprint, std::move(known));
}

}  // namespace

std::string request_fingerprint(const Request& request) {
    Sha256 digest;
    const auto add = [&digest](std::string_view part) {
        digest.update(std::to_string(part.size()) + ":");
        digest.update(part);
    };
    add(method_name(request.method));
    add(request.path);
    for (const auto& [name, value] : request.query) {
        add(name);
        add(value);
    }
    add(request.body);
    if (const UserPrincipal* const user = user_of(request.principal))
        add("user " + std::to_string(user->user_id));
    return hex_encode(digest.finish());
}

Result<std::string> idempotency_key(const Request& request) {
    const std::string_view given = request.header(kIdempotencyKey);
    if (given.data() == nullptr) return std::string();  // not sent; an empty one is an error
    std::string key(given);
    bool is_valid = !key.empty() && key.size() <= kAnswerKeyBytesMax;
    for (const char c : key) is_valid = is_valid && c > ' ' && c < '\x7f';
    if (is_valid) return key;
    return Error{Code::kInvalidParameterValue,
                 "An Idempotency-Key is 1 to " + std::to_string(kAnswerKeyBytesMax) +
                     " visible ASCII characters without spaces, e.g. a UUID."};
}

Response repeated_response(std::string text) {
    Response response = json_text_response(std::move(text));
    response.headers.emplace_back("Idempotent-Replayed", "true");
    return response;
}

bool is_repeat(const Store& store, const Request& request) {
    const Result<std::string> key = idempotency_key(request);
    if (!key || key->empty()) return false;
    const auto found = find_repeat(store, *key, request_fingerprint(request));
    return found && *found;
}

std::vector<Command> AnswerRecord::with(std::vector<Command> commands, std::string text) const {
    if (key_.empty()) return commands;
    KeyedCommand keyed{
        key_, fingerprint_, {}, [text = std::move(text)](const Outcome&) { return text; }};
    keyed.command.push_back(std::move(commands.back()));
    commands.back() = Operation(std::move(keyed));
    return commands;
}

void Repeats::once(const std::shared_ptr<Request>& request, const Responder& respond, Work work) {
    const Result<std::string> key = idempotency_key(*request);
    if (!key) return respond(error_response(key.error()));
    if (key->empty()) return work(AnswerRecord(), respond);
    std::string fingerprint = request_fingerprint(*request);
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto [running, is_first] = running_.try_emplace(*key, Running{fingerprint, {}});
        if (is_first || running->second.fingerprint == fingerprint)
            running->second.waiting.push_back(respond);
        else
            return respond(error_response(
                answer_for(*key, fingerprint, KnownAnswer{running->second.fingerprint, {}})
                    .error()));
        if (!is_first) return;
    }
    const auto make = [self = shared_from_this(), key = *key, fingerprint, work = std::move(work)] {
        Result<std::optional<std::string>> known = find_repeat(self->store_, key, fingerprint);
        if (!known) return self->settle(key, error_response(known.error()));
        if (*known) return self->settle(key, repeated_response(std::move(**known)));
        work(AnswerRecord(key, fingerprint),
             [self, key](const Response& response) { self->settle(key, response); });
    };
    if (!store_.post_read(make)) settle(*key, error_response(too_busy()));
}

void Repeats::settle(const std::string& key, const Response& response) {
    std::vector<Responder> waiting;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        waiting = std::move(running_.extract(key).mapped().waiting);
    }
    for (std::size_t i = 0; i < waiting.size(); ++i) {
        Response copy = response;
        if (i > 0 && copy.status == 200) copy.headers.emplace_back("Idempotent-Replayed", "true");
        waiting[i](std::move(copy));
    }
}

}  // namespace tune::tracker
