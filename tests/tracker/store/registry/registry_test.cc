// Registered models and versions in the store: numbers, shelves, events, what is refused whole.

#include "tracker/store/registry/registry.h"

#include "tests/tracker/store/store_fixture.h"
#include "tracker/sqlite/connection.h"

namespace tune::tracker {
namespace {

class RegistryTest : public StoreTest {
protected:
    static Command of(RegistryCommand command) { return Command(std::move(command)); }

    RegisteredModel create(const std::string& name, std::vector<Tag> tags = {}) {
        return run<RegisteredModel>(of(CreateRegisteredModel{name, std::move(tags), ""}));
    }
    ModelVersion create_version(const std::string& name, std::vector<Tag> tags = {},
                                const std::string& source = "s3://b/p") {
        CreateModelVersion command{.name = name, .source = source};
        command.tags = std::move(tags);
        return run<ModelVersion>(of(std::move(command)));
    }
    void tag_version(const std::string& name, const std::string& version, const Tag& tag) {
        run(of(SetModelVersionTag{name, version, tag}));
    }
    RegisteredModel model(const std::string& name) {
        auto found = get_registered_model(*store_, name);
        EXPECT_TRUE(found) << found.error().text();
        return found ? std::move(*found) : RegisteredModel{};
    }
    ModelVersion version(const std::string& name, const std::string& number) {
        auto found = get_model_version(*store_, name, number);
        EXPECT_TRUE(found) << found.error().text();
        return found ? std::move(*found) : ModelVersion{};
    }
    /// "a/2 a/1 b/1"
    std::string versions(SearchModelVersions query = {}) {
        auto page = search_model_versions(*store_, query);
        if (!page) return page.error().message;
        std::string text;
        for (const ModelVersion& one : page->items)
            text += (text.empty() ? "" : " ") + one.name + "/" + std::to_string(one.version);
        return text;
    }
    std::string models(SearchRegisteredModels query = {}) {
        auto page = search_registered_models(*store_, query);
        if (!page) return page.error().message;
        std::string text;
        for (const RegisteredModel& one : page->items) text += (text.empty() ? "" : " ") + one.name;
        return text;
    }
    std::vector<RegistryChanged> events() {
        store_->wait_for_observers();
        return observer_.of<RegistryChanged>();
    }

    const Tag prompt_tag_{std::string(kIsPromptTag), "true"};
};

TEST_F(RegistryTest, NumbersGrowAndAreNeverGivenTwice) {
    create("m");
    EXPECT_EQ(create_version("m").version, 1);
    EXPECT_EQ(create_version("m").version, 2);
    run(of(DeleteModelVersion{"m", "2"}));
    reopen();
    EXPECT_EQ(create_version("m").version, 3);
    EXPECT_EQ(refusal(of(DeleteModelVersion{"m", "2"})),
              "RESOURCE_DOES_NOT_EXIST: Model Version (name=m, version=2) not found");
    run(of(DeleteRegisteredModel{"m"}));
    create("m");
    EXPECT_EQ(create_version("m").version, 1);
}

TEST_F(RegistryTest, ADeletedVersionIsRedacted) {
    create("m");
    create_version("m");
    run(of(SetRegisteredModelAlias{"m", "top", "1"}));
    run(of(DeleteModelVersion{"m", "1"}));
    EXPECT_TRUE(model("m").aliases.empty());
    EXPECT_TRUE(model("m").latest_versions.empty());
    const auto row = store_->snapshot([](sqlite::Connection& connection) -> Result<std::string> {
        TUNE_TRY(select, connection.prepare("SELECT source || storage_location || run_id || "
                                            "coalesce(description, '') FROM model_versions"));
        TUNE_TRY_VOID(select.step());
        return std::string(select.text(0));
    });
    EXPECT_EQ(row.value(), "REDACTED-SOURCE-PATHREDACTED-RUN-ID");
}

TEST_F(RegistryTest, ARenameTakesEverythingAlong) {
    create("m", {{"k", "v"}});
    create_version("m", {{"a", "b"}});
    run(of(SetRegisteredModelAlias{"m", "top", "1"}));
    clock_.advance_ms(5);
    run<RegisteredModel>(of(RenameRegisteredModel{"m", "n"}));
    const RegisteredModel renamed = model("n");
    EXPECT_EQ(renamed.tags, (std::vector<Tag>{{"k", "v"}}));
    EXPECT_EQ(renamed.aliases, (std::vector<ModelAlias>{{"top", 1}}));
    EXPECT_EQ(version("n", "1").tags, (std::vector<Tag>{{"a", "b"}}));
    EXPECT_EQ(version("n", "1").last_updated_time_ms, renamed.last_updated_time_ms);
    EXPECT_EQ(text_of(get_registered_model(*store_, "m")),
              "RESOURCE_DOES_NOT_EXIST: Registered Model with name=m not found");
    EXPECT_EQ(events().back().old_name, "m");
    create("m");
    EXPECT_EQ(refusal(of(RenameRegisteredModel{"m", "n"})),
              "RESOURCE_ALREADY_EXISTS: Registered Model (name=n) already exists.");
}

TEST_F(RegistryTest, StagesHaveOneLatestEach) {
    create("m");
    for (int i = 0; i < 4; ++i) create_version("m");
    const auto move = [this](const char* number, const char* stage, bool archive) {
        run<ModelVersion>(of(TransitionModelVersionStage{"m", number, stage, archive}));
    };
    move("1", "production", false);
    move("2", "PRODUCTION", true);
    EXPECT_EQ(version("m", "1").stage, ModelStage::kArchived);
    std::string latest;
    for (const ModelVersion& one : model("m").latest_versions)
        latest += std::string(stage_name(one.stage)) + std::to_string(one.version) + " ";
    EXPECT_EQ(latest, "Archived1 Production2 None4 ");
    EXPECT_EQ(refusal(of(TransitionModelVersionStage{"m", "3", "None", true})),
              "INVALID_PARAMETER_VALUE: Model version transition cannot archive existing model "
              "versions because 'None' is not an Active stage. Valid stages are ['Staging', "
              "'Production']");
}

TEST_F(RegistryTest, PromptsAreLeftOutUntilAskedFor) {
    create("m");
    create("p", {prompt_tag_});
    const std::string is_prompt = "tags.`mlflow.prompt.is_prompt` ";
    EXPECT_EQ(models(), "m");
    EXPECT_EQ(models({.filter = is_prompt + "= 'true'"}), "p");
    EXPECT_EQ(models({.filter = is_prompt + "!= 'true'"}), "m");
    EXPECT_EQ(models({.filter = is_prompt + "= 'false'"}), "m");
    EXPECT_EQ(models({.filter = is_prompt + "!= 'false'"}), "p");
    EXPECT_EQ(models({.filter = "name = 'p' OR name = 'm' AND " + is_prompt + "!= 'true'"}), "m");
    run(of(DeleteRegisteredModelTag{"p", std::string(kIsPromptTag)}));
    EXPECT_EQ(models(), "m p");
}

TEST_F(RegistryTest, OneTaggedVersionHidesItsModelUntilTheLastIsUntagged) {
    create("m");
    create("n");
    create_version("m");
    create_version("n");
    const std::string key(kIsPromptTag);
    const SearchModelVersions by_name{.order_by = {"name", "version_number"}};
    EXPECT_EQ(versions(by_name), "m/1 n/1");
    tag_version("m", "1", {key, "true"});
    create_version("m", {{key, "true"}}, "dummy-source");
    create_version("m");
    EXPECT_EQ(versions(by_name), "n/1");
    tag_version("m", "2", {key, "false"});
    EXPECT_EQ(versions(by_name), "n/1");
    SearchModelVersions prompts = by_name;
    prompts.filter = "tags.`" + key + "` = 'true'";
    EXPECT_EQ(versions(prompts), "m/1");
    run(of(DeleteModelVersionTag{"m", "1", key}));
    EXPECT_EQ(versions(by_name), "m/1 m/2 m/3 n/1");
    tag_version("m", "3", {key, "true"});
    run(of(DeleteModelVersion{"m", "3"}));
    // As in MLflow, whose deleted versions keep their tags.
    EXPECT_EQ(versions(by_name), "n/1");
}

TEST_F(RegistryTest, PagesResumeWhereTheyEnded) {
    create("m");
    for (int i = 0; i < 5; ++i) {
        create_version("m");
        clock_.advance_ms(i % 2);
    }
    std::string all;
    SearchModelVersions query{.max_results = 2};
    do {
        auto page = search_model_versions(*store_, query);
        ASSERT_TRUE(page);
        for (const ModelVersion& one : page->items) all += std::to_string(one.version);
        query.page_token = page->next_page_token;
        create_version("m");  // newer than the page: it moves nothing
    } while (!query.page_token.empty());
    EXPECT_EQ(all, "54321");
    query = {.filter = "name = 'm'", .page_token = "x"};
    EXPECT_EQ(versions(query), "Invalid page token, could not base64-decode");
}

TEST_F(RegistryTest, EventsSayWhatHooksTell) {
    create("m", {{"k", "1"}, {"k", "2"}});
    create_version("m", {{"a", "b"}});
    tag_version("m", "1", {"t", "u"});
    run(of(DeleteModelVersionTag{"m", "1", "t"}));
    run(of(DeleteModelVersionTag{"m", "1", "t"}));  // nothing to delete: no event
    run(of(SetRegisteredModelAlias{"m", "top", "1"}));
    run(of(DeleteRegisteredModelAlias{"m", "top"}));
    run(of(DeleteRegisteredModelAlias{"m", "top"}));
    const std::vector<RegistryChanged> told = events();
    ASSERT_EQ(told.size(), 6u);
    EXPECT_EQ(told[0].entity, RegistryEntity::kModel);
    EXPECT_EQ(told[0].tags, (std::vector<Tag>{{"k", "2"}}));
    EXPECT_EQ(told[1].source, "s3://b/p");
    EXPECT_EQ(told[1].version, 1);
    EXPECT_EQ(told[2].value, "u");
    EXPECT_EQ(told[3].action, RegistryAction::kDeleted);
    EXPECT_EQ(told[4].alias, "top");
    EXPECT_EQ(told[5].entity, RegistryEntity::kAlias);
    create("p", {prompt_tag_});
    run(of(SetRegisteredModelTag{"p", {"x", "y"}}));
    EXPECT_TRUE(events().back().is_prompt);
}

TEST_F(RegistryTest, ARefusedVersionChangesNothing) {
    create("m");
    const std::string run_id = create_run();
    const auto create_from = [&](const std::string& source, const std::string& model_id = "") {
        CreateModelVersion command{.name = "m", .source = source};
        command.run_id = run_id;
        if (!model_id.empty()) command.model_id = model_id;
        return refusal(of(std::move(command)));
    };
    EXPECT_NE(create_from("s3://b/p", "m-none"), "");
    EXPECT_NE(create_from("runs:/other/m"), "");
    EXPECT_NE(create_from("mlflow-artifacts:/0/other/artifacts"), "");
    EXPECT_EQ(versions(), "");
    EXPECT_EQ(events().size(), 1u);
    EXPECT_EQ(create_from("runs:/" + run_id + "/m"), "");
    EXPECT_EQ(create_from("mlflow-artifacts:/0/" + run_id + "/artifacts/m"), "");
    EXPECT_EQ(versions(), "m/2 m/1");
}

TEST_F(RegistryTest, ALoggedModelLearnsItsVersions) {
    create("m");
    const LoggedModel logged = run<LoggedModel>(CreateLoggedModel{.name = "l"});
    CreateModelVersion command{.name = "m", .source = "models:/" + logged.model_id};
    command.model_id = logged.model_id;
    const ModelVersion made = run<ModelVersion>(of(command));
    EXPECT_EQ(made.storage_location, logged.artifact_uri);
    run<ModelVersion>(of(command));
    EXPECT_EQ(
        store_->get_logged_model(logged.model_id)->tags,
        (std::vector<Tag>{{std::string(kModelVersionsTag),
                           R"([{"name": "m", "version": 1}, {"name": "m", "version": 2}])"}}));
    run(SetLoggedModelTags{logged.model_id, {{std::string(kModelVersionsTag), "no list"}}});
    run<ModelVersion>(of(command));
    EXPECT_EQ(store_->get_logged_model(logged.model_id)->tags.front().value,
              R"([{"name": "m", "version": 3}])");
}

TEST_F(RegistryTest, AtomicUndoesAllOfIt) {
    Atomic together;
    together.commands.push_back(of(CreateRegisteredModel{"m"}));
    together.commands.push_back(of(CreateModelVersion{.name = "m", .source = "s3://b/p"}));
    together.commands.push_back(of(CreateModelVersion{.name = "none", .source = "s3://b/p"}));
    EXPECT_EQ(refusal(std::move(together)),
              "RESOURCE_DOES_NOT_EXIST: Registered Model with name=none not found");
    EXPECT_EQ(models(), "");
    EXPECT_EQ(events().size(), 0u);
}

}  // namespace
}  // namespace tune::tracker
