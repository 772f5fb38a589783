#pragma once
// The credentials of attempts: what a trial's process shows to prove which attempt it is.
//
//   token = "tune-attempt.<run id>.<attempt>.<32 random hex digits>"
//
// The token names its run and attempt, so that one that is over is recognised as such without being
// kept: of each trial only the running attempt's SHA-256 is known, here and in its document.
//
// Thread-safe, with a lock of its own that is held for look-ups only: network threads ask here, and
// must not wait for a study that computes.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tracker/store/types.h"
#include "tuner/study/study.h"

namespace tune::tuner {

/// What a token says of its bearer.
struct AttemptStanding {
    std::string run_id = {};
    int attempt = 0;
    std::int64_t experiment_id = 0;  ///< 0 where the attempt is over
    /// Turns false once the attempt is not the current one any more; never null.
    std::shared_ptr<const std::atomic<bool>> current = {};
};

/// A new token, of 128 random bits, and what is kept of it.
[[nodiscard]] std::string make_attempt_token(const Trial& trial);
[[nodiscard]] std::string hash_of_token(std::string_view token);
/// Makes the running attempt's token and remembers its hash, which the next write of the trial puts
/// on disk.
[[nodiscard]] std::string issue_token(Trial& trial);

class AttemptCredentials {
public:
    /// Brings what is known of the trial's credential in line with the trial. To be called after
    /// each of its changes. Memory: 16 bytes and a hash node for a trial that has run, some 300
    /// bytes for one that runs.
    void follow(const Study& study, const Trial& trial);

    /// Nothing for a token that is none of ours. Also for a token of ours with a wrong secret the
    /// attempt is over: it may write nothing.
    [[nodiscard]] std::optional<AttemptStanding> find(std::string_view token) const;

    /// Why metrics of these names may not be logged to the run by `attempt_run_id`, the run of a
    /// current attempt, or by nobody that is known (empty); nothing: they may. Only a trial that
    /// runs with a credential is choosy, and only about metrics that its study measures: another
    /// trial may not log them, and without a credential nobody may once this attempt has sent a
    /// request with its own, nor after an earlier attempt of the trial, whose processes may still
    /// be running somewhere.
    [[nodiscard]] std::optional<std::string> objection(
        std::string_view run_id, std::string_view attempt_run_id,
        std::span<const tracker::Metric> metrics) const;

    /// True if it is known that no request came with the credential of the trial's running attempt.
    [[nodiscard]] bool is_unheard(const std::string& run_id) const;
    /// After a restart: nobody knows what the running attempts sent to the server before.
    void forget_silence();

private:
    struct Entry {
        int attempt = 0;
        std::int64_t experiment_id = 0;
        std::string hash;  ///< empty: the attempt runs without a credential
        std::shared_ptr<std::atomic<bool>> current;
        /// No request with the credential is missing where one is looked for; unlike the next one
        /// it is also set where nobody knows (forget_silence).
        std::shared_ptr<std::atomic<bool>> heard;
        std::shared_ptr<std::atomic<bool>> was_heard;  ///< a request came with the credential
        std::string trial;                             ///< in words
        std::vector<std::string> measured;
    };

    mutable std::shared_mutex mutex_;
    std::unordered_map<std::string, Entry> running_;  // by run id
    std::unordered_set<std::size_t> known_runs_;      // hashes of run ids: trials that have run
    std::shared_ptr<std::atomic<bool>> over_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace tune::tuner
