#include "tracker/http/responder.h"

#include <atomic>

#include "tracker/http/protocol/content_coding.h"

namespace tune::tracker {
namespace {

void compress(Response& response) {
    const bool is_text = response.content_type.starts_with("application/json") ||
                         response.content_type.starts_with("text/");
    if (!is_text || response.body.size() < kCompressBytesMin ||
        !std::holds_alternative<std::monostate>(response.special))
        return;
    response.body = gzip(response.body);
    response.headers.emplace_back("Content-Encoding", "gzip");
    response.headers.emplace_back("Vary", "Accept-Encoding");
}

struct PendingResponse {
    PendingResponse(std::shared_ptr<ResponseTarget> response_target,
                    std::shared_ptr<Worker> on_worker, ResponderOptions responder_options)
        : target(std::move(response_target)),
          worker(std::move(on_worker)),
          options(responder_options) {}
    PendingResponse(const PendingResponse&) = delete;
    PendingResponse& operator=(const PendingResponse&) = delete;

    ~PendingResponse() {
        if (!given.exchange(true))
            send(error_response({Code::kInternalError, "The request was dropped unanswered."}));
    }

    void give(Response response) {
        if (given.exchange(true)) return;
        if (options.may_compress) compress(response);
        send(std::move(response));
    }

    void send(Response response) {
        worker->dispatch([to = target, answer = std::move(response)]() mutable {
            to->answer(std::move(answer));
        });
    }

    std::shared_ptr<ResponseTarget> target;
    std::shared_ptr<Worker> worker;
    ResponderOptions options;
    std::atomic<bool> given{false};
};

}  // namespace

Responder responder_to(std::shared_ptr<ResponseTarget> target, std::shared_ptr<Worker> worker,
                       ResponderOptions options) {
    return [pending =
                std::make_shared<PendingResponse>(std::move(target), std::move(worker), options)](
               Response response) { pending->give(std::move(response)); };
}

}  // namespace tune::tracker
