#pragma once
// What a study searches and how: its identity, its configuration, and the spaces and samplers that
// it had before. Pure.
//
// Invariants:
//  - name, seed and warm start are those of its birth, whatever configuration comes later; only
//    rename() changes the name, in the identity and the configuration alike;
//  - earlier() holds one entry for each change of space or sampler that trials have lived through,
//    so a trial's `epoch` names the space that its point was suggested in.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tuner/config/study_config.h"
#include "tuner/sampler/sampler.h"
#include "tuner/study/trial/trial.h"

namespace tune::tuner {

/// What a study is born with.
struct StudyIdentity {
    std::string name = {};
    std::string id = {};      ///< 16 hex digits; part of document keys and checkpoint folders
    std::string run_id = {};  ///< the MLflow parent run
    std::int64_t experiment_id = 0;
    std::uint64_t seed = 0;
    std::int64_t created_ms = 0;
    std::string user = {};   ///< `mlflow.user` of its runs; empty: unknown
    std::string owner = {};  ///< the user of the server who made it; empty: `user`
};

/// How points were suggested before the study was extended or given another sampler: what a replay
/// needs.
struct StudyEpoch {
    std::int64_t until = 0;  ///< the last log position of it
    Space space;
    SamplerConfig sampler;
};

/// Not thread-safe: part of a Study.
class StudyDefinition {
public:
    StudyDefinition(StudyIdentity identity, StudyConfig config);

    [[nodiscard]] const StudyIdentity& identity() const { return identity_; }
    [[nodiscard]] const std::string& name() const { return identity_.name; }
    /// The same object for as long as the study lives.
    [[nodiscard]] const StudyConfig& config() const { return config_; }
    /// The configuration as it is now, for who reads it later without the lock. Cost: a copy after
    /// each change of it. REQUIRES: who calls it may also change the study.
    [[nodiscard]] std::shared_ptr<const StudyConfig> shared_config() const;
    /// On whose account its trials run: shares and quotas are counted by this.
    [[nodiscard]] const std::string& user() const {
        return identity_.owner.empty() ? identity_.user : identity_.owner;
    }
    /// As it was asked for; what the user's quota allows may be less.
    [[nodiscard]] int priority() const { return config_.priority.value_or(0); }
    /// Its spaces and samplers before the present ones, oldest first.
    [[nodiscard]] const std::vector<StudyEpoch>& earlier() const { return earlier_; }
    /// The number of the present space.
    [[nodiscard]] int epoch() const { return static_cast<int>(earlier_.size()); }
    /// The seed that a trial's command gets; the same in each attempt, below 2^31 so that every
    /// generator takes it.
    [[nodiscard]] std::uint64_t trial_seed(std::uint64_t number) const;
    /// What stands in the way of going on with `config`: one sentence a difference in space, metric
    /// or seed, e.g. "space.lr: float 1e-05..0.1 log, was float 1e-04..0.1 log".
    [[nodiscard]] std::vector<std::string> differences(const StudyConfig& config) const;
    /// A sampler as the study would make it for this space and configuration, without observations.
    [[nodiscard]] std::unique_ptr<Sampler> new_sampler(const Space& space,
                                                       const SamplerConfig& config) const;
    /// Brings a trial of the journal into the present space. Errors: kInvalidParameterValue when
    /// its point is none of that space.
    [[nodiscard]] Result<void> bring_up(Trial& trial) const;

    void rename(const std::string& name);
    void set_priority(int priority);
    /// Before anything was suggested.
    void restore(std::vector<StudyEpoch> earlier) { earlier_ = std::move(earlier); }

    struct Changes {
        bool model = false;  ///< another space or sampler
        bool pruner = false;
    };
    /// Takes another configuration, but for the seed and the warm start: what the study was born
    /// with was used at its birth. `until`: the log position at which the epoch that ends with
    /// another model ends; nothing: no trial has seen it.
    Changes replace(StudyConfig config, std::optional<std::int64_t> until);

private:
    StudyIdentity identity_;
    StudyConfig config_;
    mutable std::shared_ptr<const StudyConfig> shared_config_;  // nothing: not asked for since
    std::vector<StudyEpoch> earlier_;
};

}  // namespace tune::tuner
