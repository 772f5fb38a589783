// The published schema and the page of options against the readers: the same words, so that none
// can drift. Whether studies validate is tests/e2e/test_foreign_spaces.py, with a validator.

#include "tuner/config/study_schema.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/system/file.h"
#include "tuner/config/study_config.h"
#include "tuner/options/option_table.h"

namespace tune::tuner::schema_test {
namespace {

using Words = std::set<std::string>;

const Json& schema() {
    static const Json parsed = parse_json(study_schema()).value();
    return parsed;
}

const Json& definition(const std::string& name) {
    return schema()["definitions"][name];
}

Words properties_of(const Json& object) {
    Words words;
    for (const auto& [name, value] : object["properties"].items()) words.insert(name);
    return words;
}

/// The words after "known: " or "one of " in the error of the reader for this study.
Words known_to_reader(const Json& study) {
    const Result<StudyConfig> read = study_config_from_json(study);
    EXPECT_FALSE(read) << study.dump();
    if (read) return {};
    const std::string& message = read.error().message;
    std::size_t at = message.rfind("nown: ");
    EXPECT_NE(at, std::string::npos) << message;
    if (at == std::string::npos) return {};
    at += 6;
    Words words;
    while (at < message.size()) {
        const std::size_t end = std::min(message.find(", ", at), message.size());
        words.insert(message.substr(at, end - at));
        at = end + 2;
    }
    return words;
}

/// A study whose `section` has a key that nobody knows.
Json with_unknown(const std::string& section, Json value) {
    value["zzz"] = 1;
    return {{section, std::move(value)}};
}

TEST(Schema, HasTheKeysOfAStudy) {
    Words known = known_to_reader({{"zzz", 1}});
    known.insert("space_order");  // of JSON only, and not offered to people
    EXPECT_EQ(properties_of(schema()), known);
}

TEST(Schema, HasTheKindsOfSamplersAndPruners) {
    for (const char* section : {"sampler", "pruner"}) {
        Words kinds;
        for (const auto& [name, value] : schema()["definitions"].items())
            if (name.starts_with(std::string(section) + "_"))
                kinds.insert(value["properties"]["type"]["const"].get<std::string>());
        EXPECT_EQ(kinds, known_to_reader({{section, {{"type", "zzz"}}}})) << section;
    }
}

TEST(Schema, HasTheKeysOfEverySamplerAndPruner) {
    for (const auto& [name, value] : schema()["definitions"].items())
        for (const char* section : {"sampler", "pruner"}) {
            if (!name.starts_with(std::string(section) + "_")) continue;
            Json study = {{"type", value["properties"]["type"]["const"]}};
            for (const Json& key : value["required"])
                if (key != "type") study[key.get<std::string>()] = 1;
            if (study.contains("of")) study["of"] = Json::array({"median"});
            EXPECT_EQ(properties_of(value), known_to_reader(with_unknown(section, study))) << name;
        }
}

TEST(Schema, HasTheKeysOfSections) {
    for (const char* section :
         {"metric", "budget", "resources", "retry", "scrape", "checkpoints", "warm_start"})
        EXPECT_EQ(properties_of(definition(section)),
                  known_to_reader(with_unknown(section, Json::object())))
            << section;
    EXPECT_EQ(properties_of(definition("log_rule")),
              known_to_reader({{"log_rules", {{{"zzz", 1}}}}}));
}

TEST(Schema, HasTheKeysOfWhatIsInThem) {
    const Json none = {{"zzz", 1}};
    EXPECT_EQ(properties_of(definition("cost")), known_to_reader({{"budget", {{"cost", none}}}}));
    EXPECT_EQ(properties_of(definition("no_progress")),
              known_to_reader({{"budget", {{"no_progress", none}}}}));
    EXPECT_EQ(properties_of(definition("constraint")),
              known_to_reader({{"constraints", Json::array({none})}}));
    EXPECT_EQ(properties_of(definition("earlier_trial")),
              known_to_reader({{"warm_start", {{"trials", Json::array({none})}}}}));
}

TEST(Schema, HasTheKeysOfEveryParameter) {
    const Json examples = {{"float", {{"float", {0, 1}}}},   {"int", {{"int", {0, 1}}}},
                           {"choice", {{"choice", {1, 2}}}}, {"ordinal", {{"ordinal", {1, 2}}}},
                           {"const", {{"const", 1}}},        {"prior", {{"normal", {0, 1}}}}};
    for (const auto& [name, spec] : examples.items()) {
        Json wrong = spec;
        wrong["zzz"] = 1;
        EXPECT_EQ(properties_of(definition(name)), known_to_reader({{"space", {{"x", wrong}}}}))
            << name;
    }
    EXPECT_EQ(definition("parameter")["anyOf"].size(), examples.size() + 1);
}

/// `tune schema --markdown > docs/study_file_options.md` after a change of a row.
TEST(Page, IsWhatTheTablesPrint) {
    const auto committed = read_file(TUNE_SOURCE_DIR "/docs/study_file_options.md");
    ASSERT_TRUE(committed);
    EXPECT_EQ(*committed, study_options_page());
}

TEST(Page, NamesEveryKeyOfTheSchema) {
    const std::string page = study_options_page();
    for (const auto& [name, value] : schema()["definitions"].items()) {
        const bool is_kind = name.starts_with("sampler_") || name.starts_with("pruner_");
        if (!is_kind && name != "budget" && name != "metric") continue;
        for (const std::string& key : properties_of(value))
            EXPECT_TRUE(key == "type" || page.find("`" + key + "`") != std::string::npos)
                << name << "." << key;
    }
}

/// What a row writes, the row reads: each kind by its name alone, where that is enough.
TEST(Options, DefaultsAreWrittenAndReadBack) {
    for (const KindBase* kind : pruner_kinds()) {
        const Json name = std::string(kind->name);
        const auto read = study_config_from_json({{"pruner", name}});
        if (!read) continue;
        const auto again = study_config_from_json({{"pruner", to_json(read->pruner)}});
        EXPECT_TRUE(again && again->pruner == read->pruner) << name;
        EXPECT_EQ(read->pruner, pruner_named(kind->name)) << name;
    }
    for (const KindBase* kind : sampler_kinds()) {
        const Json name = std::string(kind->name);
        const auto read = study_config_from_json({{"sampler", name}});
        ASSERT_TRUE(read) << name;
        const auto again = study_config_from_json({{"sampler", to_json(read->sampler)}});
        EXPECT_TRUE(again && again->sampler == read->sampler) << name;
        EXPECT_EQ(read->sampler, sampler_named(kind->name)) << name;
    }
}

/// The range that the page and the schema show is the one that the reader enforces.
TEST(Options, IntegersAreRefusedJustOutsideTheirRange) {
    std::size_t tried = 0;
    for (const KindBase* kind : pruner_kinds())
        for (const Option& option : kind->options.rows()) {
            const auto* type = std::get_if<IntegerType>(&option.type);
            if (type == nullptr) continue;
            Json pruner = {{"type", std::string(kind->name)}};
            for (const std::string& key : kind->options.required()) pruner[key] = 1;
            if (pruner["type"] == "threshold") pruner["upper"] = 1;
            for (const std::int64_t wrong : {type->low - 1, type->high + 1}) {
                pruner[option.name] = wrong;
                const auto read = study_config_from_json({{"pruner", pruner}});
                ASSERT_FALSE(read) << pruner;
                EXPECT_NE(read.error().message.find("expected an integer from"), std::string::npos)
                    << read.error().message;
                ++tried;
            }
        }
    EXPECT_GT(tried, 20u);
}

/// As above for the keys of a study themselves.
TEST(Options, KeysOfAStudyAreRefusedJustOutsideTheirRange) {
    const Json schema_of_keys = schema()["properties"];
    std::size_t tried = 0;
    for (const char* key : {"priority", "stop_after_failures"})
        for (const auto& [bound, step] : {std::pair("minimum", -1), std::pair("maximum", 1)}) {
            const auto edge = schema_of_keys[key][bound].get<std::int64_t>();
            EXPECT_TRUE(study_config_from_json({{key, edge}})) << key << " " << edge;
            const auto read = study_config_from_json({{key, edge + step}});
            ASSERT_FALSE(read) << key;
            EXPECT_NE(read.error().message.find("expected an integer from"), std::string::npos)
                << read.error().message;
            ++tried;
        }
    EXPECT_EQ(tried, 4u);
    EXPECT_TRUE(study_config_from_json({{"study", std::string(200, 'a')}}));
    EXPECT_FALSE(study_config_from_json({{"study", std::string(201, 'a')}}));
    EXPECT_EQ(schema_of_keys["study"]["maxLength"], 200);
    EXPECT_FALSE(study_config_from_json({{"timeout", 0}}));
    EXPECT_TRUE(study_config_from_json({{"grace", 0}}));
}

TEST(Page, ShowsTypeRangeAndDefaultOfTheKeysOfAStudy) {
    const std::string page = study_options_page();
    for (const char* row : {"| `priority` | integer from -1000 to 1000 | 0 |",
                            "| `stop_after_failures` | integer of at least 0 | 3 |",
                            "| `grace` | duration | 30s |", "| `register` | text | |"})
        EXPECT_NE(page.find(row), std::string::npos) << row;
    EXPECT_EQ(schema()["properties"]["grace"]["default"], "30s");
}

/// Every closed object of the schema is held against a reader above.
TEST(Schema, NothingIsLeftOut) {
    const Words held = {"cost",   "no_progress", "earlier_trial", "constraint", "warm_start",
                        "float",  "int",         "choice",        "ordinal",    "const",
                        "prior",  "metric",      "budget",        "resources",  "retry",
                        "scrape", "log_rule",    "checkpoints"};
    for (const auto& [name, value] : schema()["definitions"].items()) {
        if (!value.contains("properties")) continue;
        EXPECT_EQ(value.value("additionalProperties", Json(true)), Json(false)) << name;
        EXPECT_TRUE(held.contains(name) || name.starts_with("sampler_") ||
                    name.starts_with("pruner_"))
            << name << ": add it to a test of this file";
    }
}

}  // namespace
}  // namespace tune::tuner::schema_test
