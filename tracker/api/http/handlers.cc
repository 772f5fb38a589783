// A write is parsed, submitted and answered from its outcome; a read is answered on a reader
// thread. Where too many wait, both are 429.

#include "tracker/api/http/handlers.h"

#include <limits>

#include "tracker/api/http/repeats.h"
#include "tracker/store/permissions/read_permissions.h"

namespace tune::tracker {
namespace {

/// The command that is made once per key.
Command with_key(std::string key, const Request& request, Command command,
                 const RenderOutcome& render) {
    KeyedCommand keyed{std::move(key), request_fingerprint(request), {}, render};
    keyed.command.push_back(std::move(command));
    return Operation(std::move(keyed));
}

Response answer_to_write(const Outcome& outcome, const RenderOutcome& render) {
    const auto* recorded = std::get_if<RecordedResponse>(&outcome);
    if (recorded == nullptr) return json_text_response(render ? render(outcome) : "{}");
    return recorded->is_repeat ? repeated_response(recorded->text)
                               : json_text_response(recorded->text);
}

}  // namespace

Response response_of(Result<std::string> result) {
    if (!result) return error_response(result.error());
    return json_text_response(std::move(result).value());
}

Result<std::vector<ExperimentId>> readable_experiments(const Store& store, const Request& request,
                                                       std::vector<ExperimentId> experiment_ids,
                                                       ResourceType part) {
    constexpr ExperimentId kNoExperiment = std::numeric_limits<ExperimentId>::min();
    if (!request.viewer || experiment_ids.empty()) return experiment_ids;
    TUNE_TRY(readable, store.snapshot([&](sqlite::Connection& connection) {
        if (request.viewer->is_denied(part)) return Result(std::vector<ExperimentId>());
        return visible_experiments(connection, *request.viewer, experiment_ids);
    }));
    if (readable.empty()) readable.push_back(kNoExperiment);
    return readable;
}

Error too_busy() {
    return {Code::kRequestLimitExceeded,
            "More reads are waiting than the server can hold. Try again later."};
}

Handler write_handler(Store& store, ParseCommand parse, RenderOutcome render) {
    return [&store, parse = std::move(parse), render = std::move(render)](
               const std::shared_ptr<Request>& request, const Responder& respond) {
        const auto work = [&store, &parse, &render, request, respond] {
            Result<std::string> key = idempotency_key(*request);
            if (!key) return respond(error_response(key.error()));
            Result<Command> command = parse(*request);
            if (!command) return respond(error_response(command.error()));
            if (!key->empty())
                command = with_key(std::move(*key), *request, std::move(*command), render);
            store.submit(std::move(command).value(), [respond, &render](Result<Outcome> outcome) {
                if (!outcome) return respond(error_response(outcome.error()));
                respond(answer_to_write(*outcome, render));
            });
        };
        if (request->body.size() <= kInlineParseBytesMax) return work();
        if (!store.post_read(work)) respond(error_response(too_busy()));
    };
}

Handler read_handler(Store& store, ReadResponse read) {
    return [&store, read = std::move(read)](const std::shared_ptr<Request>& request,
                                            const Responder& respond) {
        const bool posted =
            store.post_read([&read, request, respond] { respond(response_of(read(*request))); });
        if (!posted) respond(error_response(too_busy()));
    };
}

}  // namespace tune::tracker
