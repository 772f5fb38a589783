// A token names its run and attempt, so that a request is checked against one trial without a
// search; its secret is kept as a hash. It is current as long as the trial runs that attempt,
// nothing longer.

#include "tuner/study/registry/attempt_credentials.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <mutex>

#include "base/crypto/digest.h"
#include "base/id.h"
#include "base/text/hex.h"

namespace tune::tuner {
namespace {

constexpr std::size_t kSecretBytes = 16;

struct TokenParts {
    std::string run_id;
    int attempt = 0;
};

/// Nothing for what is not of a token's form.
std::optional<TokenParts> read_token(std::string_view token) {
    if (!token.starts_with(kAttemptTokenPrefix)) return std::nullopt;
    token.remove_prefix(kAttemptTokenPrefix.size());
    const std::size_t secret = token.rfind('.');
    if (secret == std::string_view::npos) return std::nullopt;
    const std::size_t attempt = token.rfind('.', secret - 1);
    if (secret == 0 || attempt == std::string_view::npos) return std::nullopt;
    TokenParts parts{.run_id = std::string(token.substr(0, attempt))};
    const char* const end = token.data() + secret;
    const auto [at, error] = std::from_chars(token.data() + attempt + 1, end, parts.attempt);
    if (error != std::errc() || at != end) return std::nullopt;
    return parts;
}

/// What decides about the trial.
std::vector<std::string> decisive_metrics(const StudyConfig& config) {
    std::vector<std::string> names = measured_metrics(config);
    const auto& cost = config.budget.cost;
    if (cost && cost->of == CostBudget::Of::kMetric) names.push_back(cost->metric);
    return names;
}

}  // namespace

std::string make_attempt_token(const Trial& trial) {
    return std::string(kAttemptTokenPrefix) + trial.run_id + "." + std::to_string(trial.attempt) +
           "." + random_hex(kSecretBytes);
}

std::string hash_of_token(std::string_view token) {
    return hex_encode(sha256(token));
}

std::string issue_token(Trial& trial) {
    std::string token = make_attempt_token(trial);
    trial.progress->holder.credential_hash = hash_of_token(token);
    return token;
}

void AttemptCredentials::follow(const Study& study, const Trial& trial) {
    if (trial.attempt == 0) return;
    const std::unique_lock lock(mutex_);
    known_runs_.insert(std::hash<std::string>{}(trial.run_id));
    const auto found = running_.find(trial.run_id);
    if (trial.state != TrialState::kRunning) {
        if (found == running_.end()) return;
        found->second.current->store(false, std::memory_order_release);
        running_.erase(found);
        return;
    }
    const std::string& hash = trial.progress->holder.credential_hash;
    const bool is_same = found != running_.end() && found->second.attempt == trial.attempt &&
                         found->second.hash == hash;
    if (is_same) return;
    if (found != running_.end()) found->second.current->store(false, std::memory_order_release);
    running_.insert_or_assign(
        trial.run_id,
        Entry{.attempt = trial.attempt,
              .experiment_id = study.identity().experiment_id,
              .hash = hash,
              .current = std::make_shared<std::atomic<bool>>(true),
              .heard = std::make_shared<std::atomic<bool>>(false),
              .was_heard = std::make_shared<std::atomic<bool>>(false),
              .trial = "trial " + std::to_string(trial.number) + " of study '" + study.name() + "'",
              .measured = decisive_metrics(study.config())});
}

std::optional<AttemptStanding> AttemptCredentials::find(std::string_view token) const {
    std::optional<TokenParts> parts = read_token(token);
    if (!parts) return std::nullopt;
    const std::string hash = hash_of_token(token);
    const std::shared_lock lock(mutex_);
    AttemptStanding standing{.run_id = std::move(parts->run_id), .attempt = parts->attempt};
    const auto found = running_.find(standing.run_id);
    const bool is_current = found != running_.end() && found->second.attempt == standing.attempt &&
                            equal_secrets(found->second.hash, hash);
    if (is_current) {
        found->second.heard->store(true, std::memory_order_relaxed);
        found->second.was_heard->store(true, std::memory_order_relaxed);
        standing.experiment_id = found->second.experiment_id;
        standing.current = found->second.current;
        return standing;
    }
    if (!known_runs_.contains(std::hash<std::string>{}(standing.run_id))) return std::nullopt;
    standing.current = over_;
    return standing;
}

std::optional<std::string> AttemptCredentials::objection(
    std::string_view run_id, std::string_view attempt_run_id,
    std::span<const tracker::Metric> metrics) const {
    const std::shared_lock lock(mutex_);
    const auto found = running_.find(std::string(run_id));
    if (found == running_.end()) return std::nullopt;
    const Entry& entry = found->second;
    const bool is_heard = entry.was_heard->load(std::memory_order_relaxed);
    const bool is_open = attempt_run_id.empty() && entry.attempt == 1 && !is_heard;
    if (entry.hash.empty() || is_open || attempt_run_id == run_id) return std::nullopt;
    const auto decisive = std::find_if(metrics.begin(), metrics.end(), [&](const auto& metric) {
        return std::find(entry.measured.begin(), entry.measured.end(), metric.key) !=
               entry.measured.end();
    });
    if (decisive == metrics.end()) return std::nullopt;
    const std::string what = "metric '" + decisive->key + "' decides about " + entry.trial;
    if (!attempt_run_id.empty())
        return what + ", whose run this is: another trial cannot log it there";
    const std::string why = entry.attempt > 1
                                ? ", of which an earlier attempt may still be running"
                                : ", whose attempt has sent requests with its credential";
    return what + why +
           ": from then on it is taken only with the credential of the current "
           "attempt, number " +
           std::to_string(entry.attempt) +
           " (send its MLFLOW_TRACKING_TOKEN as a Bearer token). Nothing was logged.";
}

bool AttemptCredentials::is_unheard(const std::string& run_id) const {
    const std::shared_lock lock(mutex_);
    const auto found = running_.find(run_id);
    return found != running_.end() && !found->second.hash.empty() &&
           !found->second.heard->load(std::memory_order_relaxed);
}

void AttemptCredentials::forget_silence() {
    const std::unique_lock lock(mutex_);
    for (auto& [run_id, entry] : running_) entry.heard->store(true, std::memory_order_relaxed);
}

}  // namespace tune::tuner
