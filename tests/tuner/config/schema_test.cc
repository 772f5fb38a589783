// The published schema against the readers: the same words, so that neither can drift. Whether
// studies validate is tests/e2e/test_foreign_spaces.py, with a validator.

#include "tuner/config/study_schema.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "tuner/config/study_config.h"

namespace tune::tuner {
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
    for (const char* section : {"metric", "budget", "retry", "scrape", "warm_start"})
        EXPECT_EQ(properties_of(definition(section)),
                  known_to_reader(with_unknown(section, Json::object())))
            << section;
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

/// Every closed object of the schema is held against a reader above.
TEST(Schema, NothingIsLeftOut) {
    const Words held = {"cost",  "no_progress", "earlier_trial", "constraint", "warm_start",
                        "float", "int",         "choice",        "ordinal",    "const",
                        "prior", "metric",      "budget",        "retry",      "scrape"};
    for (const auto& [name, value] : schema()["definitions"].items()) {
        if (!value.contains("properties")) continue;
        EXPECT_EQ(value.value("additionalProperties", Json(true)), Json(false)) << name;
        EXPECT_TRUE(held.contains(name) || name.starts_with("sampler_") ||
                    name.starts_with("pruner_"))
            << name << ": add it to a test of this file";
    }
}

}  // namespace
}  // namespace tune::tuner
