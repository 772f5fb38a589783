#pragma once
// POST to the outside, many at a time on one thread, with nothing that the receiver could use
// against us: the address of each connection is checked before anything is sent, redirects are not
// followed, proxies of the environment are ignored, answers and time are bounded.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tracker/webhooks/target_url.h"

namespace tune::tracker {

/// Of an answer's body this much is kept; what follows is not read.
inline constexpr std::size_t kReceiverAnswerBytesMax = 64u << 10;
/// More headers than this end the transfer.
inline constexpr std::size_t kAnswerHeaderBytesMax = 64u << 10;

struct PostOptions {
    TargetPolicy policy = {};
    /// From the first look-up to the end of the answer.
    int timeout_ms = 30'000;
    /// File with the certificates that are trusted; empty: the system's.
    std::string ca_file = {};
};

struct PostRequest {
    std::string url;
    std::vector<std::string> headers;  ///< "Name: value"
    std::string body;
};

struct PostResponse {
    int status = 0;                    ///< 0: there was no answer, `error` says why
    std::string body;                  ///< at most kReceiverAnswerBytesMax
    std::optional<int> retry_after_s;  ///< seconds of a Retry-After header
    std::string error;                 ///< one sentence; empty with a status
    bool is_refused = false;           ///< by our rules: never to be tried again
};

/// Not thread-safe, but wake() is.
class PostClient {
public:
    using Done = std::function<void(PostResponse)>;

    /// Errors: those of CurlLibrary::get.
    [[nodiscard]] static Result<std::unique_ptr<PostClient>> make(PostOptions options);
    /// Breaks off what is under way, without calling its Done.
    ~PostClient();
    PostClient(const PostClient&) = delete;
    PostClient& operator=(const PostClient&) = delete;

    /// Begins; `done` is called once, by a later poll(), or at once if it cannot begin.
    void start(PostRequest request, Done done);
    [[nodiscard]] std::size_t in_flight() const;
    /// Moves all transfers, waits for at most `timeout_ms` for the next thing to do, and calls the
    /// Done of those that ended.
    void poll(int timeout_ms);
    /// Ends the wait of a poll() on another thread, or of the next one.
    void wake();

private:
    struct Transfer;
    struct State;
    explicit PostClient(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace tune::tracker
