// Live events of users who may not see all: each gets exactly the events of what may be read at
// that moment, whichever kind they are.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <set>

#include "tests/tracker/auth/users_api.h"
#include "tracker/api/artifacts/artifact_handlers.h"
#include "tracker/api/ui/live_events.h"
#include "tracker/auth/token_routes.h"

namespace tune::tracker {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class LiveUsersTest : public UsersTest {
protected:
    LiveUsersTest() : UsersTest(Permission::kNone) { api_.store->add_observer(&live_); }
    ~LiveUsersTest() override { api_.store->stop(); }

    /// A stream that `who` has opened, and what has come.
    class Stream {
    public:
        Stream(LiveUsersTest& test, const std::string& who, const std::string& topics,
               const std::string& last_event_id = "")
            : Stream(test, authorization(who), "", topics, last_event_id) {}
        Stream(LiveUsersTest& test, const std::string& authorization, const std::string& cookie,
               const std::string& topics, const std::string& last_event_id) {
            Json fields = {{"topics", topics}};
            if (!last_event_id.empty()) fields["last_event_id"] = last_event_id;
            auto asked = request(Method::kGet, "/api/ui/events", fields);
            if (!cookie.empty()) asked->headers.emplace_back("Cookie", cookie);
            Answer answer = test.send(std::move(asked), authorization);
            EXPECT_EQ(answer.status, 200);
            subscription_ = std::get<EventStreamBody>(answer.response.special).subscription;
            subscription_->on_ready([this] {
                const std::lock_guard lock(mutex_);
                is_ready_ = true;
                changed_.notify_all();
            });
        }
        ~Stream() { subscription_->on_ready({}); }

        /// All that has come once something with `words` has; a minute at most.
        const std::string& until(const std::string& words) {
            const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
            while (text_.find(words) == std::string::npos) {
                {
                    std::unique_lock lock(mutex_);
                    if (!changed_.wait_until(lock, deadline, [this] { return is_ready_; })) {
                        ADD_FAILURE() << "'" << words << "' did not come; what came: " << text_;
                        return text_;
                    }
                    is_ready_ = false;
                }
                for (const auto& frame : subscription_->take()) text_ += *frame;
            }
            return text_;
        }
        /// Waits until the stream has ended; a minute at most. Nothing came with its end.
        void expect_end() {
            const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
            while (!subscription_->has_ended()) {
                std::unique_lock lock(mutex_);
                ASSERT_TRUE(changed_.wait_until(lock, deadline, [this] { return is_ready_; }));
                is_ready_ = false;
            }
            EXPECT_THAT(subscription_->take(), ::testing::IsEmpty());
        }
        [[nodiscard]] bool has_ended() const { return subscription_->has_ended(); }
        /// All that has come by now.
        const std::string& now() {
            for (const auto& frame : subscription_->take()) text_ += *frame;
            return text_;
        }
        [[nodiscard]] std::set<std::string> kinds() const {
            std::set<std::string> kinds;
            for (std::size_t at = text_.find("event: "); at != std::string::npos;
                 at = text_.find("event: ", at + 1))
                kinds.insert(text_.substr(at + 7, text_.find('\n', at) - at - 7));
            return kinds;
        }
        [[nodiscard]] std::string last_id() const {
            const std::size_t at = text_.rfind("id: ");
            return text_.substr(at + 4, text_.find('\n', at) - at - 4);
        }

    private:
        std::shared_ptr<EventSubscription> subscription_;
        std::mutex mutex_;
        std::condition_variable changed_;
        bool is_ready_ = false;
        std::string text_;
    };

    /// Everything that makes an event, of this experiment and run, with `mark` in all of it.
    void make_every_event(const std::string& who, const std::string& experiment,
                          const std::string& run, const std::string& mark) {
        EXPECT_EQ(post(who, "runs/update", {{"run_id", run}, {"run_name", mark}}).status, 200);
        for (const char* tag : {"kept", "gone"})
            EXPECT_EQ(
                post(who, "runs/set-tag", {{"run_id", run}, {"key", tag}, {"value", mark}}).status,
                200);
        EXPECT_EQ(post(who, "runs/delete-tag", {{"run_id", run}, {"key", "gone"}}).status, 200);
        EXPECT_EQ(post(who, "runs/log-parameter",
                       {{"run_id", run}, {"key", "p-" + mark}, {"value", mark}})
                      .status,
                  200);
        EXPECT_EQ(post(who, "runs/log-metric",
                       {{"run_id", run}, {"key", "m-" + mark}, {"value", 1}, {"timestamp", 1}})
                      .status,
                  200);
        announce_artifact(api_.hub, experiment + "/" + run + "/artifacts/" + mark);
        api_.hub.publish("experiment:" + experiment, "alert", {{"message", mark}},
                         std::stoll(experiment));
        EXPECT_EQ(post(who, "experiments/update",
                       {{"experiment_id", experiment}, {"new_name", "e-" + mark}})
                      .status,
                  200);
        EXPECT_FALSE(run_of(who, experiment).empty());
    }

    LiveEvents live_{api_.hub, api_.clock};
};

TEST_F(LiveUsersTest, OfEveryKindOfEventComesWhatMayBeRead) {
    const std::string mine = experiment_of("bob", "mine");
    const std::string theirs = experiment_of("eve", "hers");
    const std::string my_run = run_of("bob", mine);
    const std::string their_run = run_of("eve", theirs);
    Stream bob(*this, "bob",
               "experiments,studies,experiment:" + mine + ",run:" + my_run +
                   ",experiment:" + theirs + ",run:" + their_run);
    // Somebody wants each of the topics, so that each event is made.
    Stream all(*this, "owner",
               "experiments,experiment:" + mine + ",run:" + my_run + ",experiment:" + theirs +
                   ",run:" + their_run);
    make_every_event("eve", theirs, their_run, "secret");
    for (const char* words : {"e-secret", "m-secret", "p-secret", "activity"})
        EXPECT_THAT(all.until(words), HasSubstr(words));
    make_every_event("bob", mine, my_run, "visible");
    for (const char* words : {"e-visible", "m-visible", "p-visible", "\"path\":\"visible\"",
                              "\"message\":\"visible\"", "activity"})
        EXPECT_THAT(bob.until(words), Not(HasSubstr("secret"))) << words;
    for (const std::string& id : {their_run, "\"" + theirs + "\""})
        EXPECT_THAT(bob.until("e-visible"), Not(HasSubstr(id)));
    for (const char* kind :
         {"run", "metrics", "params", "experiment", "artifacts", "alert", "activity"})
        EXPECT_THAT(bob.kinds(), Contains(kind));
}

TEST_F(LiveUsersTest, AGrantCountsFromThenOn) {
    const std::string theirs = experiment_of("eve", "hers");
    Stream bob(*this, "bob", "experiments");
    const auto rename = [&](const char* name) {
        EXPECT_EQ(post("eve", "experiments/update", {{"experiment_id", theirs}, {"new_name", name}})
                      .status,
                  200);
    };
    Stream eve(*this, "eve", "experiments");
    rename("before");
    eve.until("before");
    grant("bob", "experiment", theirs, "READ");
    rename("granted");
    EXPECT_THAT(bob.until("granted"), Not(HasSubstr("before")));
    EXPECT_EQ(post("owner", "users/permissions/revoke",
                   {{"username", "bob"}, {"resource_type", "experiment"}, {"resource_id", theirs}})
                  .status,
              200);
    rename("revoked");
    eve.until("revoked");
    const std::string mine = experiment_of("bob", "of-bob");
    EXPECT_THAT(bob.until("of-bob"), Not(HasSubstr("revoked")));
}

TEST_F(LiveUsersTest, WhatWasMissedIsCutToo) {
    const std::string theirs = experiment_of("eve", "hers");
    std::string last;
    {
        Stream bob(*this, "bob", "experiments");
        static_cast<void>(experiment_of("bob", "first"));
        bob.until("first");
        last = bob.last_id();
    }
    Stream eve(*this, "eve", "experiments");
    EXPECT_EQ(post("eve", "experiments/update", {{"experiment_id", theirs}, {"new_name", "secret"}})
                  .status,
              200);
    eve.until("secret");
    static_cast<void>(experiment_of("bob", "second"));
    Stream all(*this, "owner", "experiments");
    Stream again(*this, "bob", "experiments", last);
    EXPECT_THAT(again.until("second"), Not(HasSubstr("secret")));
    EXPECT_THAT(again.kinds(), Not(Contains("resync")));
}

TEST_F(LiveUsersTest, AUserWhoIsDeletedHearsNothingMore) {
    Stream bob(*this, "bob", "experiments");
    const std::string mine = experiment_of("bob", "mine");
    bob.until("mine");
    EXPECT_EQ(call("owner", Method::kDelete, "users/delete", {{"username", "bob"}}).status, 200);
    Stream all(*this, "owner", "experiments");
    EXPECT_EQ(post("owner", "experiments/update", {{"experiment_id", mine}, {"new_name", "after"}})
                  .status,
              200);
    all.until("after");
    EXPECT_THAT(bob.now(), Not(HasSubstr("after")));
}

/// Streams end with the rights that they were opened with; each test ends bob's in one way, and
/// eve's, who keeps hers, goes on.
class EndOfRightsTest : public LiveUsersTest {
protected:
    EndOfRightsTest() {
        add_token_routes(api_.router, *api_.store, *tokens_);
        tokens_->on_revoked([this] { live_.review_readers(); });
        experiment_ = experiment_of("bob", "mine");
        grant("eve", "experiment", experiment_, "READ");
    }

    void rename(const std::string& name) {
        const Answer done = post("owner", "experiments/update",
                                 {{"experiment_id", experiment_}, {"new_name", name}});
        EXPECT_EQ(done.status, 200) << done.message();
    }
    Answer owner(Method method, const std::string& path, const Json& fields) {
        Answer done = call("owner", method, path, fields);
        EXPECT_EQ(done.status, 200) << path << ": " << done.message();
        return done;
    }
    std::string token_of(const std::string& who, const Json& fields, std::string* id = nullptr) {
        const std::string path = who == "owner" ? "tokens" : "users/current/tokens";
        const Answer made = post(who, "/api/2.0/tune/" + path, fields);
        EXPECT_EQ(made.status, 200) << made.message();
        if (id != nullptr) *id = made.json["token"]["token_id"];
        return "Bearer " + made.json["secret"].get<std::string>();
    }
    std::string session_of(const std::string& who) {
        const Answer answer = api_.send(request(Method::kPost, "/api/2.0/tune/login",
                                                {{"username", who}, {"password", kPassword}}));
        for (const auto& [name, value] : answer.response.headers)
            if (name == "Set-Cookie") return value.substr(0, value.find(';'));
        ADD_FAILURE() << "no cookie";
        return "";
    }
    /// Opens the stream, sees that it works, calls `end_rights`, and sees it end; eve's does not.
    void expect_end_with(const std::string& authorization, const std::string& cookie,
                         const std::function<void()>& end_rights) {
        Stream bob(*this, authorization, cookie, "experiments,experiment:" + experiment_, "");
        Stream eve(*this, "eve", "experiments");
        rename("before");
        bob.until("before");
        eve.until("before");
        end_rights();
        bob.expect_end();
        rename("after");
        EXPECT_THAT(eve.until("after"), HasSubstr("after"));
        EXPECT_THAT(bob.now(), Not(HasSubstr("after")));
        EXPECT_FALSE(eve.has_ended());
    }

    std::string experiment_;
};

TEST_F(EndOfRightsTest, AnAdminWhoIsOneNoMoreHearsAsAnAdminNoMore) {
    owner(Method::kPatch, "users/update-admin", {{"username", "bob"}, {"is_admin", true}});
    expect_end_with(authorization("bob"), "", [this] {
        owner(Method::kPatch, "users/update-admin", {{"username", "bob"}, {"is_admin", false}});
    });
}

TEST_F(EndOfRightsTest, AUserIsDeleted) {
    expect_end_with(authorization("bob"), "", [this] {
        owner(Method::kDelete, "users/delete", {{"username", "bob"}});
    });
}

TEST_F(EndOfRightsTest, APasswordIsChanged) {
    expect_end_with(authorization("bob"), "", [this] {
        owner(Method::kPatch, "users/update-password",
              {{"username", "bob"}, {"password", "quite another one"}});
    });
}

TEST_F(EndOfRightsTest, APageLogsOut) {
    const std::string cookie = session_of("bob");
    expect_end_with("", cookie, [&] {
        auto asked = request(Method::kPost, "/api/2.0/tune/logout", Json::object());
        asked->headers.emplace_back("Cookie", cookie);
        EXPECT_EQ(api_.send(std::move(asked)).status, 200);
    });
}

TEST_F(EndOfRightsTest, ASessionEndsWithThePasswordAndWithItsTime) {
    expect_end_with("", session_of("bob"), [this] {
        owner(Method::kPatch, "users/update-password",
              {{"username", "bob"}, {"password", kPassword}});
    });
    expect_end_with("", session_of("bob"), [this] {
        clock_.advance_ms(kSessionLife_ms);
        live_.review_readers();  // as it does by itself every ten seconds
    });
}

TEST_F(EndOfRightsTest, ATokenOfAUserIsRevoked) {
    std::string id;
    const std::string token = token_of("bob", {{"scope", "read"}}, &id);
    expect_end_with(token, "", [&] {
        EXPECT_EQ(call("bob", Method::kDelete, "/api/2.0/tune/users/current/tokens/" + id).status,
                  200);
    });
}

TEST_F(EndOfRightsTest, ATokenOfAUserEndsWithItsTimeAndWithTheUser) {
    const std::string token = token_of("bob", {{"scope", "read"}, {"lives_ms", 5000}});
    expect_end_with(token, "", [this] {
        clock_.advance_ms(5000);
        live_.review_readers();
    });
    expect_end_with(token_of("bob", {{"scope", "read"}}), "", [this] {
        owner(Method::kDelete, "users/delete", {{"username", "bob"}});
    });
}

TEST_F(EndOfRightsTest, ATokenOfTheOwnersIsRevoked) {
    std::string id;
    const std::string token = token_of("owner", {{"scope", "read"}}, &id);
    expect_end_with(token, "", [&] { owner(Method::kDelete, "/api/2.0/tune/tokens/" + id, {}); });
}

TEST_F(EndOfRightsTest, AnExpiredTokenHearsNothingEvenBeforeItIsLookedAt) {
    Stream bob(*this, token_of("bob", {{"scope", "read"}, {"lives_ms", 5000}}), "", "experiments",
               "");
    Stream eve(*this, "eve", "experiments");
    rename("before");
    bob.until("before");
    clock_.advance_ms(5000);
    rename("after");
    eve.until("after");
    EXPECT_THAT(bob.now(), Not(HasSubstr("after")));
    EXPECT_TRUE(bob.has_ended());
}

/// What stays open but hears less: by a grant that ends, in each place where one can stand.
TEST_F(EndOfRightsTest, AGrantThatEndsTakesItsEventsAlong) {
    int turn = 0;
    const auto expect_loss = [&](const char* how, const std::function<void()>& end_grant) {
        SCOPED_TRACE(how);
        const std::string mark = std::to_string(++turn);
        Stream joe(*this, "joe", "experiments,experiment:" + experiment_);
        Stream eve(*this, "eve", "experiments");
        rename("before" + mark);
        joe.until("before" + mark);
        end_grant();
        rename("after" + mark);
        eve.until("after" + mark);
        EXPECT_THAT(joe.now(), Not(HasSubstr("after")));
        EXPECT_FALSE(joe.has_ended());
    };
    const Json role =
        owner(Method::kPost, "roles/create", {{"workspace", "default"}, {"name", "team"}})
            .json["role"]["id"];
    const auto give = [&](const std::string& type, const char* permission) -> Json {
        return owner(Method::kPost, "roles/permissions/add",
                     {{"role_id", role},
                      {"resource_type", type},
                      {"resource_pattern", "*"},
                      {"permission", permission}})
            .json["role_permission"]["id"];
    };
    const auto take = [&](const Json& id) {
        owner(Method::kDelete, "roles/permissions/remove", {{"role_permission_id", id}});
    };
    const auto assign = [&] {
        owner(Method::kPost, "roles/assign", {{"role_id", role}, {"username", "joe"}});
    };
    assign();
    Json given = give("experiment", "READ");
    expect_loss("the role's grant is removed", [&] { take(given); });
    given = give("experiment", "READ");
    expect_loss("the role's grant becomes a DENY", [&] {
        owner(Method::kPatch, "roles/permissions/update",
              {{"role_permission_id", given}, {"permission", "DENY"}});
    });
    take(given);
    given = give("workspace", "MANAGE");
    expect_loss("the workspace's grant is removed", [&] { take(given); });
    static_cast<void>(give("experiment", "READ"));
    expect_loss("the role is taken away", [&] {
        owner(Method::kDelete, "roles/unassign", {{"role_id", role}, {"username", "joe"}});
    });
    assign();
    expect_loss("another grant denies", [&] { grant("joe", "experiment", experiment_, "DENY"); });
    owner(Method::kPost, "users/permissions/revoke",
          {{"username", "joe"}, {"resource_type", "experiment"}, {"resource_id", experiment_}});
    expect_loss("the role is deleted", [&] {
        owner(Method::kDelete, "roles/delete", {{"role_id", role}});
    });
}

TEST_F(EndOfRightsTest, WhatWaitsToBeSentIsTakenBackToo) {
    Stream eve(*this, "eve", "experiments");
    Stream all(*this, "owner", "experiments");
    rename("waiting");
    all.until("waiting");
    grant("eve", "experiment", "*", "DENY");
    api_.store->wait_for_observers();
    api_.hub.review_readers();
    EXPECT_THAT(eve.now(), Not(HasSubstr("waiting")));
}

TEST_F(EndOfRightsTest, OfRunsThatAreDeniedNothingIsHeard) {
    const std::string run = run_of("bob", experiment_);
    grant("eve", "run", "*", "DENY");
    Stream eve(*this, "eve", "experiments,experiment:" + experiment_ + ",run:" + run);
    Stream all(*this, "owner", "experiments,experiment:" + experiment_ + ",run:" + run);
    EXPECT_EQ(post("bob", "runs/update", {{"run_id", run}, {"run_name", "secret"}}).status, 200);
    all.until("secret");
    rename("visible");
    EXPECT_THAT(eve.until("visible"), Not(HasSubstr(run)));
    EXPECT_THAT(eve.kinds(), ::testing::ElementsAre("experiment"));
}

class GrantedCreatorsTest : public UsersTest {
protected:
    GrantedCreatorsTest() : UsersTest(Permission::kRead, Creators::kGranted) {}
};

TEST_F(GrantedCreatorsTest, OnlyWhoHasUseOfTheWorkspaceMakesThings) {
    EXPECT_EQ(post("bob", "experiments/create", {{"name", "e"}}).status, 403);
    EXPECT_EQ(post("bob", "registered-models/create", {{"name", "m"}}).status, 403);
    const Answer role = post("owner", "roles/create", {{"workspace", "default"}, {"name", "team"}});
    ASSERT_EQ(role.status, 200) << role.message();
    const Json id = role.json["role"]["id"];
    const Answer use = post("owner", "roles/permissions/add",
                            {{"role_id", id},
                             {"resource_type", "workspace"},
                             {"resource_pattern", "*"},
                             {"permission", "USE"}});
    ASSERT_EQ(use.status, 200) << use.message();
    const Answer given = post("owner", "roles/assign", {{"role_id", id}, {"username", "bob"}});
    ASSERT_EQ(given.status, 200) << given.message();
    EXPECT_EQ(post("bob", "experiments/create", {{"name", "e"}}).status, 200);
    EXPECT_EQ(post("bob", "registered-models/create", {{"name", "m"}}).status, 200);
    EXPECT_EQ(post("eve", "experiments/create", {{"name", "f"}}).status, 403);
    EXPECT_EQ(post("ann", "experiments/create", {{"name", "g"}}).status, 200) << "an admin";
}

}  // namespace
}  // namespace tune::tracker
