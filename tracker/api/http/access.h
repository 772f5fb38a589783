#pragma once
// What a route needs of who asks. Every route declares it, and the router checks it in one place:
// how far a credential reaches before any byte of the body is read (Router::resolve), what a user
// may do with the experiment or model that the request names before the handler runs.

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "base/result.h"
#include "tracker/api/http/principal.h"
#include "tracker/store/permissions/permission_types.h"

namespace tune::tracker {

/// From what everybody may to what only the owner of the data folder may.
enum class Access : std::uint8_t {
    kOpen,   ///< nothing: the page's files, whether the server lives
    kRead,   ///< look at what is stored
    kByUrl,  ///< nothing but the URL, which nobody can guess: parts of an upload
    kWrite,  ///< log, tag, rename, delete: what MLflow's own server lets clients do
    kAgent,  ///< take trials and run their commands
    kRun,    ///< start, stop or change what runs
    kAdmin,  ///< the whole data folder: backups, removal for good
};

/// "open", "read", ...
[[nodiscard]] std::string_view access_name(Access access);

/// What a route is about, on a server with users: where its requests name the experiment or model
/// whose permissions decide (tracker/auth/subjects.h reads it).
enum class Subject : std::uint8_t {
    kNothing,           ///< nothing of anybody's: any user
    kServer,            ///< the server as a whole: admins only
    kSelf,              ///< the user `username`: that user, or an admin
    kSelfOrWorkspace,   ///< the same, or who manages the workspace
    kWorkspace,         ///< roles: who manages the workspace
    kCut,               ///< the handler shows what the user may read (Request::viewer), no more
    kMadeExperiment,    ///< a new experiment: any user, who will manage it
    kMadeModel,         ///< a new registered model: any user, who will manage it
    kExperiment,        ///< experiment_id
    kWholeExperiment,   ///< experiment_id, with all that lies in it
    kRunsOfExperiment,  ///< experiment_id: its runs
    kMadeRun,           ///< a new run in experiment_id
    kMadeLoggedModel,   ///< a new logged model in experiment_id; source_run_id may be read
    kLedExperiment,     ///< experiment_id; whatever an attempt names, it gets its study's
    kExperimentName,    ///< experiment_name; the same
    kExperiments,       ///< experiment_ids, each of them
    kRun,               ///< run_id or run_uuid
    kRuns,              ///< run_id or run_ids, each of them
    kRunAndModels,      ///< run_id, and every logged model that the body names
    kRunAndInputs,      ///< run_id; the logged models that it used may be read
    kRunOrLoggedModel,  ///< run_id, or else model_id
    kLoggedModel,       ///< model_id of the path
    kRegisteredModel,   ///< name: a registered model or a prompt
    kWholeModel,        ///< the same, with all its versions
    kModelVersion,      ///< name: its versions
    kModelAlias,        ///< name, and a version that may be read
    kMadeVersion,       ///< name; what the version is made of may be read
    kArtifact,          ///< the experiment in whose folder the path lies
    kUpload,            ///< the same, of an upload by its id
    kStudy,             ///< name of the path: its study's experiment
    kMadeStudy,         ///< a new study, or the one of this name
    kGrant,             ///< resource_type and resource_id, experiment_id, or name
    kTopics,            ///< each of the topics
};

/// The access of one route. There is no default: a route that declares none, or that is about
/// something and does not say what, does not compile.
class Needs {
public:
    /// For what no user's permission bears on: open to all, or the owner's alone.
    // NOLINTNEXTLINE(google-explicit-constructor): {Method::kGet, Access::kOpen, "/x", ...}
    consteval Needs(Access access)
        : Needs(access, access == Access::kAdmin ? Subject::kServer : Subject::kNothing) {
        if (access != Access::kOpen && access != Access::kByUrl && access != Access::kAdmin)
            throw "say what the route is about: {Access::kRead, Subject::kRun}";
    }
    /// `least`: what the user may do with it; READ for what reads, EDIT for the rest.
    constexpr Needs(Access access, Subject subject)
        : Needs(access, subject, access <= Access::kRead ? Permission::kRead : Permission::kEdit) {}
    constexpr Needs(Access access, Subject subject, Permission least)
        : access_(access), subject_(subject), least_(least) {}

    [[nodiscard]] constexpr Access access() const { return access_; }
    [[nodiscard]] constexpr Subject subject() const { return subject_; }
    [[nodiscard]] constexpr Permission least() const { return least_; }
    /// Whether the route may change something. Says nothing of a HEAD or OPTIONS request.
    [[nodiscard]] constexpr bool is_write() const { return access_ > Access::kRead; }

private:
    Access access_;
    Subject subject_;
    Permission least_;
};

static_assert(!std::is_default_constructible_v<Needs>, "no route comes without a decision");

/// What requests without a credential may do where nothing else is said, on loopback: all that
/// clients of MLflow's own server may.
inline constexpr Access kAnonymousOnLoopback = Access::kWrite;

/// Whether `principal` may use a route that needs `access`. kOpen and kByUrl are everybody's; a
/// request without a credential reaches up to `anonymous`, an attempt up to kWrite, a token or a
/// user as far as it says, the owner everything. Errors: kUnauthenticated without a credential,
/// kPermissionDenied for one that does not reach, kResourceConflict for an attempt that is over: it
/// reaches no further than a request without a credential, and of that check_may_write() refuses it
/// what changes something. Who only says to be a user passes: Authenticator::prove finds out.
[[nodiscard]] Result<void> check_access(const Principal& principal, Access access,
                                        Access anonymous);

}  // namespace tune::tracker
