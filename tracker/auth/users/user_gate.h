#pragma once
// Who asks, and what they may do, on a server with users: everybody logs in, by name and password,
// by the page's session or by a token; what a user may do with an experiment or a model, the grants
// say. The owner of the data folder and admins may do everything.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "tracker/auth/local_gate.h"
#include "tracker/auth/users/epoch_cache.h"
#include "tracker/auth/users/password_pool.h"
#include "tracker/auth/users/subjects.h"
#include "tracker/store/store.h"

namespace tune::tracker {

/// Credentials that are remembered, so that a request costs no second hash; 300 bytes each.
inline constexpr std::size_t kKnownCredentialsMax = 10'000;
/// Permissions and owners of runs that are remembered; 150 bytes each.
inline constexpr std::size_t kKnownPermissionsMax = 100'000;
/// How long a session is taken for granted before it is looked up again: it may have expired.
inline constexpr std::int64_t kSessionTrusted_ms = 60'000;

/// Which users may make something that there is not yet.
enum class Creators : std::uint8_t {
    kEverybody,  ///< MLflow's rule
    kGranted,    ///< who has USE or MANAGE on the workspace, by a role
    kAdmins,
};

struct UserGateOptions {
    /// What a user may do with what no grant is about. MLflow's default.
    Permission default_permission = Permission::kRead;
    /// Who may make experiments and registered models.
    Creators creators = Creators::kEverybody;
    /// Who may post studies, new ones and others: their commands run on the agents.
    Creators study_creators = Creators::kEverybody;
    /// The experiment of a study, with `or_erased` also of the one of this name that was removed
    /// last; nothing without one. Called on threads that may wait.
    std::function<std::optional<ExperimentId>(const std::string& name, bool or_erased)>
        experiment_of_study = {};
    /// Where in the artifact store an upload of this id goes; empty without one.
    std::function<std::string(const std::string& upload_id)> path_of_upload = {};
};

/// Thread-safe. No call blocks but those that say so.
class UserGate final : public Authenticator {
public:
    /// `inner` knows tokens, attempts and the owner; it is closed to all others. All outlive the
    /// gate.
    UserGate(const LocalGate& inner, const TokenBook& tokens, Store& store, PasswordPool& pool,
             const Clock& clock, std::string cookie_name, UserGateOptions options);

    [[nodiscard]] Principal authenticate(const Credentials& credentials) const override;
    [[nodiscard]] Result<void> check_access(const Principal& principal,
                                            Access access) const override;
    void prove(const std::shared_ptr<Request>& request, Access access,
               std::function<void(Result<void>)> done) const override;
    [[nodiscard]] std::optional<Result<void>> admit_now(Request& request,
                                                        const Needs& needs) const override;
    void admit(const std::shared_ptr<Request>& request, const Needs& needs,
               std::function<void(Result<void>)> done) const override;
    [[nodiscard]] std::string_view challenge(bool is_from_page) const override;
    [[nodiscard]] Result<void> check_metrics(const Principal& principal, std::string_view run_id,
                                             std::span<const Metric> metrics) const override;

    /// Finds out who asks, whatever they may do, and puts it into the request; `done` is called
    /// once, from any thread.
    void recognise(const std::shared_ptr<Request>& request, std::function<void()> done) const;

    [[nodiscard]] const std::string& cookie_name() const { return cookie_name_; }
    [[nodiscard]] Permission default_permission() const { return options_.default_permission; }

    /// What the user may do with the resource, or by "*" with all of a type, all told. Waits for a
    /// read.
    [[nodiscard]] Result<Permission> permission_of(std::int64_t user_id, ResourceType type,
                                                   const std::string& resource_id) const;

    /// Whether name and password belong together. Takes a hash also where there is no such user.
    /// Waits for it: call it on the pool.
    [[nodiscard]] Result<std::optional<User>> verify(const std::string& username,
                                                     const std::string& password) const;

private:
    struct Asker;
    /// Whether the store may be asked, which takes time.
    enum class Effort { kRemembered, kRead };
    template <class Value>
    using Found = std::optional<Result<Value>>;  // nothing: it takes a read

    [[nodiscard]] std::optional<ClaimedPrincipal> claim(const Credentials& credentials) const;
    [[nodiscard]] Result<void> watch(Request& request) const;
    [[nodiscard]] static ClaimedPrincipal claim_of(const TokenPrincipal& token);
    [[nodiscard]] Principal remembered(ClaimedPrincipal claimed) const;
    [[nodiscard]] static UserPrincipal principal_of(const User& user,
                                                    const ClaimedPrincipal& claimed);
    [[nodiscard]] Result<UserPrincipal> proved(const ClaimedPrincipal& claimed) const;
    [[nodiscard]] Result<std::optional<User>> find(const ClaimedPrincipal& claimed) const;
    [[nodiscard]] Result<void> identify(Request& request, Access access) const;
    [[nodiscard]] Result<void> identify_and_judge(Request& request, const Needs& needs) const;
    void run_later(const Request& request, std::function<void()> work,
                   const std::function<void(Result<void>)>& refused) const;
    [[nodiscard]] std::optional<Result<void>> judge(Request& request, const Needs& needs,
                                                    Effort effort) const;
    [[nodiscard]] std::optional<Result<void>> judge_topics(const Asker& asker,
                                                           const std::vector<Touch>& touches,
                                                           Request& request, Effort effort) const;
    [[nodiscard]] Found<bool> may(const Asker& asker, const Touch& touch, Request& request,
                                  Effort effort) const;
    [[nodiscard]] Found<bool> may_create(const Asker& asker, Creators creators,
                                         Effort effort) const;
    [[nodiscard]] Found<bool> may_experiment(const Asker& asker, const Touch& touch,
                                             Request& request, Effort effort) const;
    /// A grant on something that is part of an experiment or a model goes before the grant on the
    /// whole (MLflow's governing_permission).
    [[nodiscard]] Found<bool> may_whole(const Asker& asker, ResourceType type, const Touch& touch,
                                        Effort effort) const;
    [[nodiscard]] Found<bool> may_model(const Asker& asker, Touch touch, Effort effort) const;
    [[nodiscard]] Found<bool> may_upload(const Asker& asker, const Touch& touch, Request& request,
                                         Effort effort) const;
    [[nodiscard]] std::optional<Result<void>> cut_view(Viewer& viewer, Effort effort) const;
    /// The name of its resource type; empty when there is no model of this name.
    [[nodiscard]] Found<std::string> kind_of_model(const std::string& name, Effort effort) const;
    [[nodiscard]] Found<std::string> experiment_of(const Touch& touch, Effort effort) const;
    [[nodiscard]] Result<std::string> read_experiment_of(const Touch& touch) const;
    using Grant = std::optional<Permission>;
    [[nodiscard]] Found<Grant> grant(std::int64_t user_id, ResourceType type, const std::string& id,
                                     Effort effort) const;
    [[nodiscard]] Permission with_default(const Grant& given) const;
    [[nodiscard]] Found<Permission> permission(std::int64_t user_id, ResourceType type,
                                               const std::string& id, Effort effort) const;

    const LocalGate& inner_;
    const TokenBook& tokens_;
    Store& store_;
    PasswordPool& pool_;
    const Clock& clock_;
    const std::string cookie_name_;
    const UserGateOptions options_;
    const std::string key_;  // of this process: what is remembered of a credential
    /// Who proved to be a user, and until when that is taken for granted.
    struct Known {
        User user;
        std::int64_t until_ms = 0;
    };
    mutable EpochCache<Known> credentials_{kKnownCredentialsMax};
    mutable EpochCache<std::string> owners_{kKnownPermissionsMax};
    mutable EpochCache<Grant> grants_{kKnownPermissionsMax};
};

}  // namespace tune::tracker
