// What is sent: MLflow's examples (mlflow/webhooks/types.py of 3.17.2) and the events of runs.

#include "tracker/webhooks/payload.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tune::tracker {
namespace {

WebhookEvent event(std::string_view entity, std::string_view action) {
    WebhookEvent found;
    for (const EnumName& one : entity_names())
        if (one.name == entity) found.entity = one.number;
    for (const EnumName& one : action_names())
        if (one.name == action) found.action = one.number;
    EXPECT_TRUE(check_event(found)) << entity << " " << action;
    return found;
}

TEST(Payload, ExamplesAreMlflowsInItsOrder) {
    EXPECT_EQ(example_data(event("REGISTERED_MODEL", "CREATED")),
              R"({"name":"example_model","tags":{"example_key":"example_value"},)"
              R"("description":"An example registered model"})");
    EXPECT_EQ(example_data(event("MODEL_VERSION", "CREATED")),
              R"({"name":"example_model","version":"1","source":"models:/123",)"
              R"("run_id":"abcd1234abcd5678","tags":{"example_key":"example_value"},)"
              R"("description":"An example model version"})");
    EXPECT_EQ(example_data(event("MODEL_VERSION_TAG", "SET")),
              R"({"name":"example_model","version":"1","key":"example_key",)"
              R"("value":"example_value"})");
    EXPECT_EQ(example_data(event("PROMPT_VERSION_TAG", "DELETED")),
              R"({"name":"example_prompt","version":"1","key":"example_key"})");
    EXPECT_EQ(example_data(event("MODEL_VERSION_ALIAS", "CREATED")),
              R"({"name":"example_model","alias":"example_alias","version":"1"})");
    EXPECT_EQ(example_data(event("PROMPT_ALIAS", "DELETED")),
              R"({"name":"example_prompt","alias":"example_alias"})");
    EXPECT_EQ(example_data(event("PROMPT_TAG", "SET")),
              R"({"name":"example_prompt","key":"example_key","value":"example_value"})");
    EXPECT_EQ(Json::parse(example_data(event("PROMPT_VERSION", "CREATED")))["template"],
              "Hello {{name}}!");
    EXPECT_EQ(Json::parse(example_data(event("BUDGET_POLICY", "EXCEEDED")))["current_spend"],
              105.5);
}

TEST(Payload, BodyNamesEntityActionAndTime) {
    EXPECT_EQ(delivery_body(event("PROMPT", "CREATED"), 1'700'000'000'007, "{}"),
              R"({"entity":"prompt","action":"created",)"
              R"("timestamp":"2023-11-14T22:13:20.007000+00:00","data":{}})");
}

TEST(Payload, RunsTellTheirBeginningAndEnd) {
    const Event created = RunCreated{.info = {.run_id = "r",
                                              .experiment_id = 7,
                                              .run_name = "n",
                                              .user_id = "u",
                                              .status = RunStatus::kRunning,
                                              .start_time_ms = 5,
                                              .end_time_ms = {},
                                              .artifact_uri = "",
                                              .lifecycle_stage = LifecycleStage::kActive},
                                     .tags = {{"k", "v\xff"}}};
    const auto first = outgoing_events(created);
    ASSERT_EQ(first.size(), 1u);
    EXPECT_EQ(first[0].event, event("RUN", "CREATED"));
    EXPECT_EQ(first[0].data(), R"({"run_id":"r","experiment_id":"7","run_name":"n","user_id":"u",)"
                               R"("status":"RUNNING","start_time":5,"end_time":null,"tags":{"k":"v)"
                               "\xef\xbf\xbd\"}}");
    RunInfo info = std::get<RunCreated>(created).info;
    for (const auto& [status, action] : {std::pair{RunStatus::kFinished, "FINISHED"},
                                         {RunStatus::kFailed, "FAILED"},
                                         {RunStatus::kKilled, "KILLED"}}) {
        info.status = status;
        const Event ended = RunUpdated{info, true};
        ASSERT_EQ(outgoing_events(ended).size(), 1u);
        EXPECT_EQ(outgoing_events(ended)[0].event, event("RUN", action));
        EXPECT_TRUE(outgoing_events(RunUpdated{info, false}).empty()) << "renamed, for example";
    }
    info.status = RunStatus::kRunning;
    EXPECT_TRUE(outgoing_events(RunUpdated{info, true}).empty());
}

TEST(Payload, AlertTagsAreAlerts) {
    const Event tags = TagsSet{.run_id = "r",
                               .experiment_id = 7,
                               .tags = {{"other", "x"}, {"tune.alert.nan", "loss is NaN"}}};
    const auto found = outgoing_events(tags);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].event, event("RUN", "ALERTED"));
    EXPECT_EQ(found[0].data(),
              R"({"run_id":"r","experiment_id":"7","kind":"nan","message":"loss is NaN"})");
}

std::string told(const RegistryChanged& change) {
    const Event changed = change;
    const auto found = outgoing_events(changed);
    if (found.empty()) return "";
    return lower_name(entity_name(found[0].event.entity)) + " " +
           lower_name(action_name(found[0].event.action)) + " " + found[0].data();
}

TEST(Payload, ChangesOfTheRegistryAreMlflows) {
    using E = RegistryEntity;
    using A = RegistryAction;
    EXPECT_EQ(told({.entity = E::kModel, .action = A::kCreated, .name = "m", .tags = {{"a", "b"}}}),
              R"(registered_model created {"name":"m","tags":{"a":"b"},"description":""})");
    EXPECT_EQ(
        told({.entity = E::kModel,
              .action = A::kCreated,
              .is_prompt = true,
              .name = "p",
              .description = "d",
              .tags = {{"mlflow.prompt.is_prompt", "true"}, {"_mlflow_prompt_type", "text"}}}),
        R"(prompt created {"name":"p","tags":{},"description":"d"})");
    EXPECT_EQ(told({.entity = E::kVersion,
                    .action = A::kCreated,
                    .name = "m",
                    .version = 3,
                    .source = "models:/x",
                    .run_id = "r"}),
              R"(model_version created {"name":"m","version":"3","source":"models:/x",)"
              R"("run_id":"r","tags":{},"description":null})");
    EXPECT_EQ(told({.entity = E::kVersion,
                    .action = A::kCreated,
                    .is_prompt = true,
                    .name = "p",
                    .version = 1,
                    .tags = {{"mlflow.prompt.text", "Hi {{x}}"}, {"k", "v"}}}),
              R"(prompt_version created {"name":"p","version":"1","template":"Hi {{x}}",)"
              R"("tags":{"k":"v"},"description":null})");
    EXPECT_EQ(told({.entity = E::kVersionTag,
                    .action = A::kSet,
                    .name = "m",
                    .version = 2,
                    .key = "k",
                    .value = "v"}),
              R"(model_version_tag set {"name":"m","version":"2","key":"k","value":"v"})");
    EXPECT_EQ(told({.entity = E::kVersionTag,
                    .action = A::kDeleted,
                    .is_prompt = true,
                    .name = "p",
                    .version = 2,
                    .key = "k"}),
              R"(prompt_version_tag deleted {"name":"p","version":"2","key":"k"})");
    EXPECT_EQ(told({.entity = E::kModelTag,
                    .action = A::kSet,
                    .is_prompt = true,
                    .name = "p",
                    .key = "k",
                    .value = ""}),
              R"(prompt_tag set {"name":"p","key":"k","value":""})");
    EXPECT_EQ(told({.entity = E::kAlias,
                    .action = A::kCreated,
                    .name = "m",
                    .version = 2,
                    .alias = "champion"}),
              R"(model_version_alias created {"name":"m","alias":"champion","version":"2"})");
    EXPECT_EQ(told({.entity = E::kAlias,
                    .action = A::kDeleted,
                    .is_prompt = true,
                    .name = "p",
                    .alias = "x"}),
              R"(prompt_alias deleted {"name":"p","alias":"x"})");
    for (const auto& silent :
         {RegistryChanged{.entity = E::kModelTag, .action = A::kSet, .name = "m"},
          RegistryChanged{.entity = E::kModel, .action = A::kUpdated, .name = "m"},
          RegistryChanged{.entity = E::kModel, .action = A::kDeleted, .name = "m"},
          RegistryChanged{.entity = E::kVersion, .action = A::kUpdated, .name = "m"},
          RegistryChanged{.entity = E::kVersion, .action = A::kDeleted, .name = "m"}})
        EXPECT_EQ(told(silent), "");
}

TEST(Payload, CombinationsAreMlflows) {
    EXPECT_EQ(check_event({1, 3}).error().message,
              "Invalid action 'deleted' for entity 'registered_model'. Valid actions are: "
              "['created']");
    EXPECT_EQ(check_event({3, 1}).error().message,
              "Invalid action 'created' for entity 'model_version_tag'. Valid actions are: "
              "['deleted', 'set']");
}

}  // namespace
}  // namespace tune::tracker
