#pragma once
// From pure functions to handlers: a write is a function from the request to a Command, a read one
// from the request to an answer. What follows is the same for all of them.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tracker/api/http/router.h"
#include "tracker/store/store.h"

namespace tune::tracker {

using ParseCommand = std::function<Result<Command>(const Request&)>;
using RenderOutcome = std::function<std::string(const Outcome&)>;
using ReadResponse = std::function<Result<std::string>(const Request&)>;

/// The header of a request that must be made once.
inline constexpr std::string_view kIdempotencyKey = "Idempotency-Key";

/// A larger body is parsed on a reader thread: 256 kB of JSON takes about 2 ms.
inline constexpr std::size_t kInlineParseBytesMax = 256 << 10;

/// Parses on the network thread (large bodies on a reader thread), submits, and answers after the
/// commit with `render` (default "{}"). A request with the header Idempotency-Key is made once: a
/// repeat of it gets the recorded answer, with Idempotent-Replayed: true. `render` may run on the
/// writer thread; pure.
[[nodiscard]] Handler write_handler(Store& store, ParseCommand parse, RenderOutcome render = {});

/// Runs `read` on a reader thread of the store; 429 when too many wait.
[[nodiscard]] Handler read_handler(Store& store, ReadResponse read);

/// Those of the experiments whose runs, or what else `part` is, who asks may read. Of some of which
/// none may be read it is one that does not exist: none at all could mean all. REQUIRES: a thread
/// that may wait for a read.
[[nodiscard]] Result<std::vector<ExperimentId>> readable_experiments(
    const Store& store, const Request& request, std::vector<ExperimentId> experiment_ids,
    ResourceType part);

/// Answers `run` of the result: its JSON text or its error.
[[nodiscard]] Response response_of(Result<std::string> result);

/// The error that stands for "too many reads wait".
[[nodiscard]] Error too_busy();

}  // namespace tune::tracker
