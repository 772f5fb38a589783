#pragma once
// What the credential of an attempt may change: the run of its trial, runs beneath it, and what
// these made. One rule for all guards, with users and without.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tracker/api/http/access.h"
#include "tracker/api/http/http_types.h"
#include "tracker/auth/users/epoch_cache.h"
#include "tracker/auth/users/subjects.h"
#include "tracker/store/store.h"

namespace tune::tracker {

/// Logged models whose source run is remembered; 150 bytes each.
inline constexpr std::size_t kModelSourcesMax = 10'000;

/// A run is beneath another by its tag mlflow.parentRunId, at any depth up to kParentsMax; a run
/// or logged model that an attempt makes is put there (tracker/api/mlflow/run_routes.cc). The files
/// of a run or logged model are its own, a version of a registered model is whose run or logged
/// model it was made of. New registered models and new versions are everybody's to make. Reads, and
/// principals that are no current attempt, are none of this class's business.
/// Thread-safe. Cost: nothing for the trial's own run; a look into the store for others.
class AttemptLimits {
public:
    /// `path_of_upload`: where in the artifact store an upload goes; empty without one. The store
    /// outlives the limits.
    AttemptLimits(Store& store, std::function<std::string(const std::string&)> path_of_upload);

    /// Whether the request keeps within the limits. Nothing where that takes a read and `may_read`
    /// says not to. Errors: kPermissionDenied, with what the credential is for; those of the
    /// route's parser.
    [[nodiscard]] std::optional<Result<void>> check(Request& request, const Needs& needs,
                                                    bool may_read) const;
    /// The same on a thread that may wait: `done` is called once.
    void check_later(const std::shared_ptr<Request>& request, const Needs& needs,
                     std::function<void(Result<void>)> done) const;

private:
    enum class Standing { kOwn, kOthers, kMissing };
    using Found = std::optional<Result<Standing>>;  // nothing: it takes a read

    [[nodiscard]] Found of_touch(const AttemptPrincipal& attempt, const Touch& touch,
                                 bool may_read) const;
    [[nodiscard]] Found of_run(const AttemptPrincipal& attempt, const std::string& run_id,
                               bool may_read) const;
    [[nodiscard]] Found of_model(const AttemptPrincipal& attempt, const std::string& model_id,
                                 bool may_read) const;
    [[nodiscard]] Found of_file(const AttemptPrincipal& attempt, const Touch& touch,
                                bool may_read) const;
    [[nodiscard]] Found of_version(const AttemptPrincipal& attempt, const Request& request,
                                   bool may_read) const;
    [[nodiscard]] Result<Standing> read_run(const AttemptPrincipal& attempt,
                                            const std::string& run_id) const;
    [[nodiscard]] std::optional<Result<void>> check_made(const AttemptPrincipal& attempt,
                                                         const Request& request,
                                                         const std::vector<Touch>& touches,
                                                         bool may_read) const;

    Store& store_;
    const std::function<std::string(const std::string&)> path_of_upload_;
    mutable EpochCache<std::string> sources_{kModelSourcesMax};  // by the model's id
};

}  // namespace tune::tracker
