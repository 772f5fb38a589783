#include "tracker/api/handlers.h"

namespace tune::tracker {

Response answer_of(Result<std::string> result) {
    if (!result) return error_response(result.error());
    return json_text_response(std::move(result).value());
}

Error too_busy() {
    return {Code::kRequestLimitExceeded,
            "More reads are waiting than the server can hold. Try again later."};
}

Handler write_handler(Store& store, ParseCommand parse, RenderOutcome render) {
    return [&store, parse = std::move(parse), render = std::move(render)](
               const std::shared_ptr<Request>& request, const Responder& respond) {
        const auto work = [&store, &parse, &render, request, respond] {
            Result<Command> command = parse(*request);
            if (!command) return respond(error_response(command.error()));
            store.submit(std::move(command).value(), [respond, &render](Result<Outcome> outcome) {
                if (!outcome) return respond(error_response(outcome.error()));
                respond(json_text_response(render ? render(*outcome) : "{}"));
            });
        };
        if (request->body.size() <= kInlineParseBytesMax) return work();
        if (!store.post_read(work)) respond(error_response(too_busy()));
    };
}

Handler read_handler(Store& store, ReadAnswer read) {
    return [&store, read = std::move(read)](const std::shared_ptr<Request>& request,
                                            const Responder& respond) {
        const bool posted =
            store.post_read([&read, request, respond] { respond(answer_of(read(*request))); });
        if (!posted) respond(error_response(too_busy()));
    };
}

}  // namespace tune::tracker
