#pragma once
// From a handler's thread back to the connection's.

#include <memory>

#include "tracker/api/http/http_types.h"
#include "tracker/http/worker.h"

namespace tune::tracker {

/// JSON or text answers from this size on are compressed when the client asks.
inline constexpr std::size_t kCompressBytesMin = 16 << 10;

/// Who gets the answer, on its worker's thread.
class ResponseTarget {
public:
    virtual ~ResponseTarget() = default;
    virtual void answer(Response response) = 0;
};

struct ResponderOptions {
    bool may_compress = false;
};

/// A responder that takes the first answer to `target` on `worker`'s thread and drops further ones.
/// If all its copies are destroyed without an answer, the target gets a 500, so that a handler's
/// mistake never leaves a client waiting. Compression is done on the caller's thread.
[[nodiscard]] Responder responder_to(std::shared_ptr<ResponseTarget> target,
                                     std::shared_ptr<Worker> worker, ResponderOptions options);

}  // namespace tune::tracker
