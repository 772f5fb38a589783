// What is remembered holds for one epoch of the store (Store::permission_epoch), so a grant that is
// taken away, a user who is deleted and a password that is changed count from the answer on. The
// epoch is read before what it stands for. A password that was right is only compared with the
// stored hash again, not hashed, when the epoch is another one.

#include "tracker/auth/users/user_gate.h"

#include <array>
#include <atomic>
#include <limits>

#include "base/crypto/digest.h"
#include "base/crypto/password.h"
#include "base/id.h"
#include "base/text/hex.h"
#include "tracker/api/http/repeats.h"
#include "tracker/auth/authorization.h"
#include "tracker/store/permissions/read_permissions.h"
#include "tracker/store/reads/read_experiments.h"
#include "tracker/store/registry/read_registry.h"

namespace tune::tracker {
namespace {

Error not_authenticated() {
    return {Code::kUnauthenticated,
            "You are not authenticated. Send a user name and password (MLFLOW_TRACKING_USERNAME "
            "and MLFLOW_TRACKING_PASSWORD), or a token (MLFLOW_TRACKING_TOKEN, TUNE_TOKEN)."};
}

Error permission_denied() {
    return {Code::kPermissionDenied, "Permission denied"};
}

Error too_many_logins() {
    return {Code::kRequestLimitExceeded,
            "Too many logins wait for their passwords to be checked. Try again in a second."};
}

bool is_missing(const Error& error) {
    return error.code == Code::kResourceDoesNotExist || error.code == Code::kInvalidParameterValue;
}

/// Of the parts of experiments and models, those whose ids or values other answers repeat.
constexpr std::array kPartsShown = {ResourceType::kRun, ResourceType::kLoggedModel,
                                    ResourceType::kRegisteredModelVersion,
                                    ResourceType::kPromptVersion};

std::string owner_key(const Touch& touch) {
    return std::to_string(static_cast<int>(touch.kind)) + ":" + touch.id;
}

}  // namespace

/// Whose rights count.
struct UserGate::Asker {
    std::int64_t user_id = 0;
    std::string_view username = {};
    std::string own_experiment = {};  ///< an attempt's: it writes there whatever is granted
    bool is_attempt = false;
};

UserGate::UserGate(const LocalGate& inner, const TokenBook& tokens, Store& store,
                   PasswordPool& pool, const Clock& clock, std::string cookie_name,
                   UserGateOptions options)
    : inner_(inner),
      tokens_(tokens),
      store_(store),
      pool_(pool),
      clock_(clock),
      cookie_name_(std::move(cookie_name)),
      options_(std::move(options)),
      key_(random_hex(32)) {}

// --- who asks ------------------------------------------------------------------------------------

Principal UserGate::authenticate(const Credentials& credentials) const {
    Principal principal = inner_.identify(credentials);
    if (const auto* token = std::get_if<TokenPrincipal>(&principal); token && token->user_id != 0)
        return remembered(claim_of(*token));
    if (!std::holds_alternative<AnonymousPrincipal>(principal)) return principal;
    std::optional<ClaimedPrincipal> claimed = claim(credentials);
    if (!claimed) return principal;
    return remembered(std::move(*claimed));
}

ClaimedPrincipal UserGate::claim_of(const TokenPrincipal& token) {
    ClaimedPrincipal claimed;
    claimed.proof_key = "user " + std::to_string(token.user_id);
    claimed.user_id = token.user_id;
    claimed.most = token.most;
    return claimed;
}

std::optional<ClaimedPrincipal> UserGate::claim(const Credentials& credentials) const {
    ClaimedPrincipal claimed;
    claimed.most = Access::kAdmin;
    if (const auto login = basic_login_of(credentials.authorization)) {
        const std::string text = "login " + std::to_string(login->username.size()) + " " +
                                 login->username + login->password;
        claimed.proof_key = hex_encode(hmac_sha256(key_, text));
        claimed.username = login->username;
        claimed.password = login->password;
        return claimed;
    }
    if (const auto token = tokens_.find(bearer_of(credentials.authorization)))
        return claim_of(*token);
    const std::string_view session = cookie_of(credentials.cookie, cookie_name_);
    if (session.empty()) return std::nullopt;
    claimed.session_sha256 = hex_encode(sha256(session));
    claimed.proof_key = "session " + claimed.session_sha256;
    return claimed;
}

Principal UserGate::remembered(ClaimedPrincipal claimed) const {
    const auto known = credentials_.find(claimed.proof_key, store_.permission_epoch());
    if (!known || known->until_ms <= clock_.now_ms()) return claimed;
    return principal_of(known->user, claimed);
}

UserPrincipal UserGate::principal_of(const User& user, const ClaimedPrincipal& claimed) {
    const Access most = user.is_admin ? Access::kAdmin : Access::kRun;
    return {user.user_id, user.username, user.is_admin, std::min(most, claimed.most),
            claimed.user_id != 0};
}

Result<std::optional<User>> UserGate::verify(const std::string& username,
                                             const std::string& password) const {
    // No password has this hash, and it takes as long as any other to find that out.
    static const std::string nobody = "scrypt:32768:8:1$0123456789abcdef$" + std::string(128, '0');
    TUNE_TRY(user, store_.snapshot([&](sqlite::Connection& connection) {
        return find_user(connection, username);
    }));
    const bool is_right = check_password(user ? user->password_hash : nobody, password);
    if (!user || !is_right) return std::optional<User>();
    return user;
}

Result<std::optional<User>> UserGate::find(const ClaimedPrincipal& claimed) const {
    if (!claimed.username.empty() || !claimed.password.empty()) {
        const std::optional<Known> known = credentials_.find_old(claimed.proof_key);
        if (!known) return verify(claimed.username, claimed.password);
        TUNE_TRY(user, store_.snapshot([&](sqlite::Connection& connection) {
            return find_user(connection, known->user.user_id);
        }));
        if (user && user->password_hash == known->user.password_hash) return user;
        return verify(claimed.username, claimed.password);
    }
    return store_.snapshot([&](sqlite::Connection& connection) {
        return claimed.user_id != 0
                   ? find_user(connection, claimed.user_id)
                   : find_session_user(connection, claimed.session_sha256, clock_.now_ms());
    });
}

Result<UserPrincipal> UserGate::proved(const ClaimedPrincipal& claimed) const {
    const std::uint64_t epoch = store_.permission_epoch();
    TUNE_TRY(user, find(claimed));
    if (!user) {
        credentials_.erase(claimed.proof_key);
        return not_authenticated();
    }
    const std::int64_t until_ms = claimed.session_sha256.empty()
                                      ? std::numeric_limits<std::int64_t>::max()
                                      : clock_.now_ms() + kSessionTrusted_ms;
    credentials_.put(claimed.proof_key, {*user, until_ms}, epoch);
    return principal_of(*user, claimed);
}

/// Remembers of the credential what says whether it still holds, and not the credential.
Result<void> UserGate::watch(Request& request) const {
    const UserPrincipal* const now = user_of(request.principal);
    if (now == nullptr) return {};
    const std::string_view authorization = request.header("Authorization");
    const auto claimed = claim({authorization, request.header("Cookie")});
    if (!claimed) return not_authenticated();
    TUNE_TRY(user, find(*claimed));
    if (!user || user->user_id != now->user_id || user->is_admin != now->is_admin)
        return not_authenticated();
    const bool is_login = claimed->session_sha256.empty() && claimed->user_id == 0;
    const auto looked = std::make_shared<std::atomic<std::uint64_t>>(0);  // this epoch
    request.stands = [this, then = *user, is_login, looked, session = claimed->session_sha256,
                      token = std::string(TokenBook::id_of(bearer_of(authorization)))] {
        if (!token.empty() && !tokens_.has(token)) return false;
        const std::uint64_t epoch = store_.permission_epoch();
        if (session.empty() && looked->load() == epoch) return true;
        const Result<std::optional<User>> found =
            store_.snapshot([&](sqlite::Connection& connection) {
                return session.empty() ? find_user(connection, then.user_id)
                                       : find_session_user(connection, session, clock_.now_ms());
            });
        if (!found || !*found) return false;
        const User& here = **found;
        const bool is_same = here.user_id == then.user_id && here.is_admin == then.is_admin &&
                             (!is_login || here.password_hash == then.password_hash);
        if (is_same) looked->store(epoch);
        return is_same;
    };
    return {};
}

Result<void> UserGate::check_access(const Principal& principal, Access access) const {
    const Result<void> may = tracker::check_access(principal, access, Access::kOpen);
    if (!may && may.error().code == Code::kUnauthenticated) return not_authenticated();
    return may;
}

std::string_view UserGate::challenge(bool is_from_page) const {
    return is_from_page ? "Bearer realm=\"tune\"" : "Basic realm=\"mlflow\"";
}

Result<void> UserGate::check_metrics(const Principal& principal, std::string_view run_id,
                                     std::span<const Metric> metrics) const {
    return inner_.check_metrics(principal, run_id, metrics);
}

// --- what they may do ----------------------------------------------------------------------------

std::optional<Result<void>> UserGate::admit_now(Request& request, const Needs& needs) const {
    if (std::holds_alternative<ClaimedPrincipal>(request.principal)) return std::nullopt;
    // Who listens is looked up again, to be watched from then on.
    if (needs.subject() == Subject::kTopics && user_of(request.principal) != nullptr)
        return std::nullopt;
    return judge(request, needs, Effort::kRemembered);
}

/// A claim that takes a hash waits for the threads that hash, any other work for those that read.
void UserGate::run_later(const Request& request, std::function<void()> work,
                         const std::function<void(Result<void>)>& refused) const {
    const auto* claimed = std::get_if<ClaimedPrincipal>(&request.principal);
    const bool takes_hash = claimed != nullptr && claimed->session_sha256.empty() &&
                            claimed->user_id == 0 && !credentials_.find_old(claimed->proof_key);
    if (takes_hash) {
        if (!pool_.post(request.remote_address, std::move(work))) refused(too_many_logins());
        return;
    }
    if (!store_.post_read(std::move(work)))
        refused(Error{Code::kRequestLimitExceeded,
                      "More reads are waiting than the server can hold. Try again later."});
}

void UserGate::prove(const std::shared_ptr<Request>& request, Access access,
                     std::function<void(Result<void>)> done) const {
    run_later(
        *request, [this, request, access, done] { done(identify(*request, access)); }, done);
}

void UserGate::admit(const std::shared_ptr<Request>& request, const Needs& needs,
                     std::function<void(Result<void>)> done) const {
    run_later(
        *request, [this, request, needs, done] { done(identify_and_judge(*request, needs)); },
        done);
}

void UserGate::recognise(const std::shared_ptr<Request>& request,
                         std::function<void()> done) const {
    if (!std::holds_alternative<ClaimedPrincipal>(request->principal)) return done();
    admit(request, Needs(Access::kRead, Subject::kNothing),
          [done = std::move(done)](const Result<void>&) { done(); });
}

Result<void> UserGate::identify(Request& request, Access access) const {
    const auto* claimed = std::get_if<ClaimedPrincipal>(&request.principal);
    if (claimed == nullptr) return {};
    TUNE_TRY(user, proved(*claimed));
    request.principal = std::move(user);
    return check_access(request.principal, access);
}

/// Of a request that came over the network it is known who asks (prove); one that was handed to
/// the router within the process may still only say so.
Result<void> UserGate::identify_and_judge(Request& request, const Needs& needs) const {
    TUNE_TRY_VOID(identify(request, needs.access()));
    if (needs.subject() == Subject::kTopics) TUNE_TRY_VOID(watch(request));
    return judge(request, needs, Effort::kRead).value_or(permission_denied());
}

std::optional<Result<void>> UserGate::judge(Request& request, const Needs& needs,
                                            Effort effort) const {
    Asker asker;
    if (const UserPrincipal* const user = user_of(request.principal)) {
        if (user->is_admin) return Result<void>();
        asker.user_id = user->user_id;
        asker.username = user->username;
    } else if (const auto* attempt = std::get_if<AttemptPrincipal>(&request.principal)) {
        asker.own_experiment = std::to_string(attempt->experiment_id);
        asker.is_attempt = true;
        // Whatever it names, it is led to its own (tracker/api/mlflow/experiment_routes.cc).
        const Subject subject = needs.subject();
        if (subject == Subject::kMadeExperiment || subject == Subject::kLedExperiment ||
            subject == Subject::kExperimentName)
            return Result<void>();
        const auto within = inner_.limits().check(request, needs, effort == Effort::kRead);
        if (!within || !*within) return within;
    } else {
        return inner_.admit_now(request, needs);  // the owner, or one of the owner's tokens
    }
    request.viewer =
        Viewer{asker.user_id, options_.default_permission >= Permission::kRead,
               asker.is_attempt ? std::get<AttemptPrincipal>(request.principal).experiment_id : 0};
    if (needs.access() == Access::kRead && !asker.is_attempt) {
        const std::optional<Result<void>> known = cut_view(*request.viewer, effort);
        if (!known || !*known) return known;
    }
    Result<std::vector<Touch>> touches = touches_of(request, needs);
    if (!touches) return touches.error();
    if (needs.subject() == Subject::kTopics) return judge_topics(asker, *touches, request, effort);
    for (const Touch& touch : *touches) {
        const Found<bool> allowed = may(asker, touch, request, effort);
        if (!allowed) return std::nullopt;
        if (!*allowed) return allowed->error();
        if (!**allowed) return permission_denied();
    }
    return Result<void>();
}

std::optional<Result<void>> UserGate::cut_view(Viewer& viewer, Effort effort) const {
    for (const ResourceType type : kPartsShown) {
        const Found<Grant> given = grant(viewer.user_id, type, std::string(kAnyResource), effort);
        if (!given) return std::nullopt;
        if (!*given) return given->error();
        if (**given == Permission::kDeny) viewer.deny(type);
    }
    return Result<void>();
}

std::optional<Result<void>> UserGate::judge_topics(const Asker& asker,
                                                   const std::vector<Touch>& touches,
                                                   Request& request, Effort effort) const {
    Fields query;
    for (auto& field : request.query)
        if (field.first != "topics") query.push_back(field);
    for (const Touch& touch : touches) {
        const Found<bool> allowed = may(asker, touch, request, effort);
        if (!allowed) return std::nullopt;
        if (!*allowed) return allowed->error();
        if (**allowed) query.emplace_back("topics", touch.topic);
    }
    request.query = std::move(query);
    return Result<void>();
}

UserGate::Found<bool> UserGate::may(const Asker& asker, const Touch& touch, Request& request,
                                    Effort effort) const {
    using Kind = Touch::Kind;
    switch (touch.kind) {
        case Kind::kServer: return Result<bool>(false);
        case Kind::kMade: {
            const Found<bool> may_make = may_create(asker, options_.creators, effort);
            if (!may_make || !*may_make || !**may_make) return may_make;
            const Found<Grant> given = grant(asker.user_id, touch.part->type, touch.id, effort);
            if (!given) return std::nullopt;
            if (!*given) return given->error();
            return Result<bool>(**given != Permission::kDeny);
        }
        case Kind::kMadeStudy: {
            const Found<bool> may_post = may_create(asker, options_.study_creators, effort);
            if (!may_post || !*may_post || !**may_post) return may_post;
            return may_experiment(asker, touch, request, effort);
        }
        case Kind::kList: return Result<bool>(true);
        case Kind::kSelf:
            if (touch.id == asker.username) return Result<bool>(!asker.is_attempt);
            if (!touch.or_workspace) return Result<bool>(false);
            [[fallthrough]];
        case Kind::kWorkspace: {
            const Found<Permission> given = permission(asker.user_id, ResourceType::kWorkspace,
                                                       std::string(kAnyResource), effort);
            if (!given) return std::nullopt;
            if (!*given) return given->error();
            return Result<bool>(**given == Permission::kManage);
        }
        case Kind::kRegisteredModel: return may_model(asker, touch, effort);
        case Kind::kGranted:
            return may_whole(asker, touch.part->type, {touch.kind, touch.id, touch.least}, effort);
        case Kind::kUpload: return may_upload(asker, touch, request, effort);
        default: return may_experiment(asker, touch, request, effort);
    }
}

UserGate::Found<bool> UserGate::may_model(const Asker& asker, Touch touch, Effort effort) const {
    const Found<std::string> found = kind_of_model(touch.id, effort);
    if (!found) return std::nullopt;
    if (!*found) return found->error();
    // Versions of nothing are as closed as those that may not be seen.
    if ((*found)->empty() && touch.part) return Result<bool>(false);
    const auto type = resource_type_of(**found).value_or(ResourceType::kRegisteredModel);
    if (touch.part && type == ResourceType::kPrompt)
        touch.part->type = ResourceType::kPromptVersion;
    return may_whole(asker, type, touch, effort);
}

UserGate::Found<bool> UserGate::may_whole(const Asker& asker, ResourceType type, const Touch& touch,
                                          Effort effort) const {
    const Found<Permission> whole = permission(asker.user_id, type, touch.id, effort);
    if (!whole) return std::nullopt;
    if (!*whole) return whole->error();
    if (!touch.part) return Result<bool>(**whole >= touch.least);
    const Found<Grant> found =
        grant(asker.user_id, touch.part->type, std::string(kAnyResource), effort);
    if (!found) return std::nullopt;
    if (!*found) return found->error();
    const Grant& part = **found;
    if (touch.part->rule == Touch::Part::Rule::kVeto)
        return Result<bool>(**whole >= touch.least && part != Permission::kDeny);
    const Permission deciding = part ? with_default(part) : **whole;
    return Result<bool>(**whole >= Permission::kRead && deciding >= touch.least);
}

UserGate::Found<bool> UserGate::may_upload(const Asker& asker, const Touch& touch, Request& request,
                                           Effort effort) const {
    if (effort == Effort::kRemembered) return std::nullopt;
    const std::string path = options_.path_of_upload ? options_.path_of_upload(touch.id) : "";
    if (path.empty()) return Result<bool>(is_repeat(store_, request));
    for (const Touch& one : touches_of_path(path, touch.least)) {
        const Found<bool> allowed = may(asker, one, request, effort);
        if (!allowed || !*allowed || !**allowed) return allowed;
    }
    return Result<bool>(true);
}

UserGate::Found<bool> UserGate::may_create(const Asker& asker, Creators creators,
                                           Effort effort) const {
    if (asker.is_attempt || creators == Creators::kAdmins) return Result<bool>(false);
    if (creators == Creators::kEverybody) return Result<bool>(true);
    const Found<Permission> given =
        permission(asker.user_id, ResourceType::kWorkspace, std::string(kAnyResource), effort);
    if (!given) return std::nullopt;
    if (!*given) return given->error();
    return Result<bool>(**given >= Permission::kUse);
}

UserGate::Found<bool> UserGate::may_experiment(const Asker& asker, const Touch& touch,
                                               Request& request, Effort effort) const {
    const Found<std::string> experiment = experiment_of(touch, effort);
    if (!experiment) return std::nullopt;
    if (!*experiment) {
        if (!is_missing(experiment->error())) return experiment->error();
        // What is not there is as closed as what may not be seen: nobody learns which it is.
        // But for a name that is free: mlflow.set_experiment asks whether it is.
        if (touch.kind == Touch::Kind::kExperimentName) return Result<bool>(true);
        // Of a study, for instance, that this very request has given another name.
        if (is_repeat(store_, request)) return Result<bool>(true);
        if (touch.kind != Touch::Kind::kMadeStudy) return Result<bool>(false);
        request.is_new = true;
        return Result<bool>(!asker.is_attempt);
    }
    if (asker.is_attempt && **experiment == asker.own_experiment) return Result<bool>(true);
    return may_whole(asker, ResourceType::kExperiment,
                     {Touch::Kind::kExperiment, **experiment, touch.least, touch.part}, effort);
}

UserGate::Found<std::string> UserGate::experiment_of(const Touch& touch, Effort effort) const {
    using Kind = Touch::Kind;
    if (touch.kind == Kind::kExperiment) return Result<std::string>(touch.id);
    // Names change hands, ids of runs and models do not (but for a purge, which ends the epoch).
    const bool is_lasting = touch.kind == Kind::kRun || touch.kind == Kind::kLoggedModel;
    const std::uint64_t epoch = store_.permission_epoch();
    if (is_lasting)
        if (auto known = owners_.find(owner_key(touch), epoch))
            return Result<std::string>(std::move(*known));
    if (effort == Effort::kRemembered) return std::nullopt;
    Result<std::string> found = read_experiment_of(touch);
    if (found && is_lasting) owners_.put(owner_key(touch), *found, epoch);
    return found;
}

Result<std::string> UserGate::read_experiment_of(const Touch& touch) const {
    using Kind = Touch::Kind;
    const Error missing{Code::kResourceDoesNotExist, "not found"};
    if (touch.kind == Kind::kRun) {
        TUNE_TRY(info, store_.get_run_info(touch.id));
        return std::to_string(info.experiment_id);
    }
    if (touch.kind == Kind::kLoggedModel) {
        TUNE_TRY(model, store_.get_logged_model(touch.id));
        return std::to_string(model.experiment_id);
    }
    const bool is_study = touch.kind == Kind::kStudy || touch.kind == Kind::kMadeStudy;
    if (is_study && options_.experiment_of_study)
        if (const auto id = options_.experiment_of_study(touch.id, touch.kind == Kind::kStudy))
            return std::to_string(*id);
    if (touch.kind == Kind::kStudy) return missing;
    TUNE_TRY(experiment, store_.snapshot([&](sqlite::Connection& connection) {
        return find_experiment_by_name(connection, touch.id);
    }));
    // A deleted one does not keep its name from a new study.
    const bool is_free = touch.kind == Kind::kMadeStudy && experiment &&
                         experiment->lifecycle_stage == LifecycleStage::kDeleted;
    if (!experiment || is_free) return missing;
    return std::to_string(experiment->experiment_id);
}

UserGate::Found<std::string> UserGate::kind_of_model(const std::string& name, Effort effort) const {
    const std::uint64_t epoch = store_.permission_epoch();
    std::string key = "model:" + name;
    if (auto known = owners_.find(key, epoch)) return Result<std::string>(std::move(*known));
    if (effort == Effort::kRemembered) return std::nullopt;
    const Result<std::optional<bool>> found = store_.snapshot(
        [&](sqlite::Connection& connection) { return find_is_prompt(connection, name); });
    if (!found) return found.error();
    if (!*found) return Result<std::string>(std::string());
    std::string kind(
        resource_type_name(**found ? ResourceType::kPrompt : ResourceType::kRegisteredModel));
    owners_.put(std::move(key), kind, epoch);
    return Result<std::string>(std::move(kind));
}

UserGate::Found<UserGate::Grant> UserGate::grant(std::int64_t user_id, ResourceType type,
                                                 const std::string& id, Effort effort) const {
    const std::uint64_t epoch = store_.permission_epoch();
    std::string key = std::to_string(user_id);
    key.append(":").append(resource_type_name(type)).append(":").append(id);
    if (const auto known = grants_.find(key, epoch)) return Result<Grant>(*known);
    if (effort == Effort::kRemembered) return std::nullopt;
    Result<Grant> found = store_.snapshot(
        [&](sqlite::Connection& connection) { return granted(connection, user_id, type, id); });
    if (found) grants_.put(std::move(key), *found, epoch);
    return found;
}

Permission UserGate::with_default(const Grant& given) const {
    if (!given) return options_.default_permission;
    // A grant gives at least what everybody has, unless it says that it gives nothing.
    if (*given <= Permission::kNone) return *given;
    return std::max(*given, options_.default_permission);
}

UserGate::Found<Permission> UserGate::permission(std::int64_t user_id, ResourceType type,
                                                 const std::string& id, Effort effort) const {
    const Found<Grant> given = grant(user_id, type, id, effort);
    if (!given) return std::nullopt;
    if (!*given) return given->error();
    // Who manages nothing by a grant manages no workspace by default.
    if (type == ResourceType::kWorkspace)
        return Result<Permission>((**given).value_or(Permission::kNone));
    return Result<Permission>(with_default(**given));
}

Result<Permission> UserGate::permission_of(std::int64_t user_id, ResourceType type,
                                           const std::string& resource_id) const {
    return *permission(user_id, type, resource_id, Effort::kRead);
}

}  // namespace tune::tracker
