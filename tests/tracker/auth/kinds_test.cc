// Grants on kinds of things: what MLflow's own client does with them stands in
// tests/contract/users/test_users.py; here is what it has no call for, and what is ours.

#include <gmock/gmock.h>

#include "tests/tracker/auth/users_api.h"

namespace tune::tracker {
namespace {

using ::testing::HasSubstr;

class KindsTest : public UsersTest {
protected:
    void revoke(const std::string& who, const std::string& type, const std::string& id) {
        EXPECT_EQ(post("owner", "users/permissions/revoke",
                       {{"username", who}, {"resource_type", type}, {"resource_id", id}})
                      .status,
                  200);
    }
    std::string model_of(const std::string& who, const std::string& name, const Json& tags = {}) {
        Json fields = {{"name", name}};
        if (!tags.empty()) fields["tags"] = tags;
        const Answer made = post(who, "registered-models/create", fields);
        EXPECT_EQ(made.status, 200) << made.message();
        return name;
    }
    static Json prompt_mark(const char* value) {
        return Json::array({{{"key", "mlflow.prompt.is_prompt"}, {"value", value}}});
    }
    int status(const std::string& who, const std::string& path, const Json& fields) {
        return post(who, path, fields).status;
    }
};

TEST_F(KindsTest, ADenialOfRunsHidesTheirChartsAndColumns) {
    const std::string experiment = experiment_of("bob", "mine");
    const std::string run = run_of("bob", experiment);
    const std::string columns = "/api/ui/experiments/" + experiment + "/runs";
    const Json series = {{"run_ids", run}, {"metric", "m"}};
    EXPECT_EQ(get("eve", columns, {}).status, 200);
    EXPECT_EQ(get("eve", "/api/ui/series", series).status, 200);
    grant("eve", "run", "*", "DENY");
    EXPECT_EQ(get("eve", columns, {}).status, 403);
    EXPECT_EQ(get("eve", "/api/ui/series", series).status, 403);
    EXPECT_EQ(get("eve", "experiments/get", {{"experiment_id", experiment}}).status, 200);
    EXPECT_EQ(get("bob", columns, {}).status, 200);
}

TEST_F(KindsTest, ADenialEndsFromItsAnswerOnAndOutranksARole) {
    const std::string run = run_of("bob", experiment_of("bob", "mine"));
    const Json which = {{"run_id", run}};
    const Json role = post("owner", "roles/create", {{"workspace", "default"}, {"name", "team"}})
                          .json["role"]["id"];
    EXPECT_EQ(status("owner", "roles/permissions/add",
                     {{"role_id", role},
                      {"resource_type", "run"},
                      {"resource_pattern", "*"},
                      {"permission", "MANAGE"}}),
              200);
    EXPECT_EQ(status("owner", "roles/assign", {{"role_id", role}, {"username", "eve"}}), 200);
    EXPECT_EQ(status("eve", "runs/delete", which), 200);
    grant("eve", "run", "*", "DENY");
    EXPECT_EQ(get("eve", "runs/get", which).status, 403);
    revoke("eve", "run", "*");
    EXPECT_EQ(get("eve", "runs/get", which).status, 200);
}

TEST_F(KindsTest, WhoManagesTheWorkspaceIsNotDenied) {
    const std::string run = run_of("bob", experiment_of("bob", "mine"));
    grant("eve", "run", "*", "DENY");
    const Json role = post("owner", "roles/create", {{"workspace", "default"}, {"name", "team"}})
                          .json["role"]["id"];
    EXPECT_EQ(status("owner", "roles/permissions/add",
                     {{"role_id", role},
                      {"resource_type", "workspace"},
                      {"resource_pattern", "*"},
                      {"permission", "MANAGE"}}),
              200);
    EXPECT_EQ(get("eve", "runs/get", {{"run_id", run}}).status, 403);
    EXPECT_EQ(status("owner", "roles/assign", {{"role_id", role}, {"username", "eve"}}), 200);
    EXPECT_EQ(get("eve", "runs/get", {{"run_id", run}}).status, 200);
}

TEST_F(KindsTest, AGrantForANameThatThereIsNotYetGivesWayToTheOwner) {
    grant("bob", "registered_model", "later", "READ");
    model_of("bob", "later");
    EXPECT_EQ(status("bob", "registered-models/set-tag",
                     {{"name", "later"}, {"key", "k"}, {"value", "v"}}),
              200);
    grant("eve", "registered_model", "never", "DENY");
    EXPECT_EQ(status("eve", "registered-models/create", {{"name", "never"}}), 403);
}

TEST_F(KindsTest, AModelThatBecomesAPromptIsUnderThePromptsGrants) {
    model_of("bob", "m");
    grant("eve", "prompt", "m", "DENY");
    const Json which = {{"name", "m"}};
    EXPECT_EQ(get("eve", "registered-models/get", which).status, 200);
    EXPECT_EQ(status("bob", "registered-models/set-tag",
                     {{"name", "m"}, {"key", "mlflow.prompt.is_prompt"}, {"value", "true"}}),
              200);
    EXPECT_EQ(get("eve", "registered-models/get", which).status, 403);
    EXPECT_EQ(call("ann", Method::kDelete, "registered-models/delete-tag",
                   {{"name", "m"}, {"key", "mlflow.prompt.is_prompt"}})
                  .status,
              200);
    EXPECT_EQ(get("eve", "registered-models/get", which).status, 200);
}

TEST_F(KindsTest, WhoManagesAPromptGivesRightsOnIt) {
    model_of("bob", "p", prompt_mark("true"));
    const Json to_eve = {{"username", "eve"},
                         {"resource_type", "prompt"},
                         {"resource_id", "p"},
                         {"permission", "EDIT"}};
    EXPECT_EQ(status("eve", "users/permissions/grant", to_eve), 403);
    EXPECT_EQ(status("bob", "users/permissions/grant", to_eve), 200);
    EXPECT_EQ(get("eve", "users/permissions/get",
                  {{"username", "eve"}, {"resource_type", "prompt"}, {"resource_id", "p"}})
                  .json,
              (Json{{"allowed", true}, {"permission", "EDIT"}}));
}

TEST_F(KindsTest, RightsOnAPromptFollowItsNameAndEndWithIt) {
    model_of("bob", "p", prompt_mark("true"));
    grant("eve", "prompt", "p", "EDIT");
    EXPECT_EQ(status("bob", "registered-models/rename", {{"name", "p"}, {"new_name", "q"}}), 200);
    const Json tag = {{"name", "q"}, {"key", "k"}, {"value", "v"}};
    EXPECT_EQ(status("eve", "registered-models/set-tag", tag), 200);
    EXPECT_EQ(call("bob", Method::kDelete, "registered-models/delete", {{"name", "q"}}).status,
              200);
    model_of("bob", "q", prompt_mark("true"));
    EXPECT_EQ(status("eve", "registered-models/set-tag", tag), 403);
}

TEST_F(KindsTest, WhoMayChangeAVersionIsToldAllOfIt) {
    const std::string run = run_of("bob", experiment_of("bob", "mine"));
    model_of("bob", "m");
    EXPECT_EQ(status("bob", "model-versions/create",
                     {{"name", "m"}, {"source", "runs:/" + run + "/model"}, {"run_id", run}}),
              200);
    grant("eve", "registered_model", "m", "EDIT");
    grant("eve", "run", "*", "DENY");
    const Json which = {{"name", "m"}, {"version", "1"}};
    EXPECT_FALSE(get("eve", "model-versions/get", which).json["model_version"].contains("run_id"));
    Json change = which;
    change["description"] = "text";
    const Answer changed = call("eve", Method::kPatch, "model-versions/update", change);
    EXPECT_EQ(changed.json["model_version"]["run_id"], run) << changed.message();
}

TEST_F(KindsTest, ItsModelSaysWhetherAVersionIsAPrompts) {
    model_of("bob", "m");
    grant("eve", "registered_model", "m", "EDIT");
    grant("eve", "prompt_version", "*", "DENY");
    EXPECT_EQ(status("eve", "model-versions/create",
                     {{"name", "m"}, {"source", "dummy-source"}, {"tags", prompt_mark("true")}}),
              200);
    grant("eve", "registered_model_version", "*", "DENY");
    EXPECT_EQ(status("eve", "model-versions/create", {{"name", "m"}, {"source", "s3://b/m"}}), 403);
}

}  // namespace
}  // namespace tune::tracker
