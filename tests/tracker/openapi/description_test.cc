// The compiler of API descriptions: what the short forms mean, and that a wrong file is refused.

#include "tracker/openapi/description.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tracker/openapi/page.h"

namespace tune::openapi {
namespace {

using ::testing::HasSubstr;

class DescriptionTest : public ::testing::Test {
protected:
    ~DescriptionTest() override { std::filesystem::remove(file_); }

    Description read(const std::string& text) {
        std::ofstream(file_) << text;
        Description description;
        read_description(file_, description);
        return description;
    }
    std::string fault_of(const std::string& text) {
        try {
            read(text);
        } catch (const std::runtime_error& fault) {
            return fault.what();
        }
        return "";
    }

    std::filesystem::path file_ = std::filesystem::temp_directory_path() /
                                  ("description-" + std::to_string(getpid()) + ".yaml");
};

constexpr const char* kRuns = R"(
tag: Runs
schemas: {Run: {run_id: text!, value: real!, note: text}}
inputs: {Point: {key: text!, step: integer(0..9)}}
operations:
  POST /api/2.0/mlflow/runs/log:
    summary: Log
    path: {}
    query: {dry: boolean}
    request: {run_id: text(..5)!, points: list(..3) of Point, more!: {x: text}}
    answer: {run: Run!}
    errors: [404]
  GET /files/{path}:
    summary: Get
    answers: {200: "*/*", 304: none}
)";

TEST_F(DescriptionTest, WritesRequestsAsTheyAreRead) {
    const Description read_in = read(kRuns);
    const Schema& body = read_in.paths["/api/2.0/mlflow/runs/log"]["post"]["requestBody"];
    EXPECT_EQ(body["required"], true);
    const Schema& schema = body["content"]["application/json"]["schema"];
    EXPECT_EQ(schema["required"], Schema({"run_id", "more"}));
    EXPECT_EQ(schema["properties"]["run_id"],
              Schema({{"type", "string"}, {"maxLength", 5}, {"minLength", 1}}));
    EXPECT_EQ(schema["properties"]["points"]["type"], Schema({"array", "null"}));
    EXPECT_EQ(schema["properties"]["points"]["maxItems"], 3);
    EXPECT_EQ(schema["properties"]["more"]["type"], "object");
    EXPECT_FALSE(schema.contains("additionalProperties"));
    const Schema& step = read_in.schemas["Point"]["properties"]["step"];
    EXPECT_EQ(step["type"], Schema({"integer", "string", "null"}));
    EXPECT_EQ(step["maximum"], 9);
}

TEST_F(DescriptionTest, WritesAnswersExactly) {
    const Description read_in = read(kRuns);
    const Schema& run = read_in.schemas["Run"];
    EXPECT_EQ(run["additionalProperties"], false);
    EXPECT_EQ(run["required"], Schema({"run_id", "value"}));
    EXPECT_EQ(run["properties"]["note"], Schema({{"type", "string"}}));
    const Schema& responses = read_in.paths["/api/2.0/mlflow/runs/log"]["post"]["responses"];
    for (const char* status : {"400", "403", "404", "413", "429"})
        EXPECT_EQ(responses[status]["$ref"], std::string("#/components/responses/Error") + status);
    const Schema& files = read_in.paths["/files/{path}"]["get"];
    EXPECT_EQ(files["parameters"][0]["in"], "path");
    EXPECT_EQ(files["parameters"][0]["required"], true);
    EXPECT_TRUE(files["responses"]["200"]["content"].contains("*/*"));
    EXPECT_FALSE(files["responses"]["304"].contains("content"));
}

TEST_F(DescriptionTest, StrictReadersTakeNoNumbersInTexts) {
    const Description read_in = read("tag: T\nreads: strict\ninputs: {I: {n: integer, t: text!}}");
    EXPECT_EQ(read_in.schemas["I"]["properties"]["n"]["type"], Schema({"integer", "null"}));
    EXPECT_FALSE(read_in.schemas["I"]["properties"]["t"].contains("minLength"));
}

TEST_F(DescriptionTest, NamesFileAndLineOfAnError) {
    EXPECT_THAT(fault_of("tag: T\noperations:\n  GET /x: {summary: s, answr: {}}\n"),
                HasSubstr(".yaml:3: an operation has no 'answr'"));
    EXPECT_THAT(fault_of("tag: T\nschemas: {A: {b: txt}}\n"), HasSubstr(".yaml:2: type 'txt"));
    EXPECT_THAT(fault_of("tag: T\nschemas: {A: {b: text(3)}}\n"), HasSubstr("a range is a..b"));
    EXPECT_THAT(fault_of("tag: T\noperations: {FETCH /x: {summary: s}}\n"),
                HasSubstr("METHOD /path"));
    EXPECT_THAT(fault_of("tag: T\noperations: {GET /x: {summary: s}}\n"), HasSubstr("answer"));
    EXPECT_THAT(fault_of("operations: {}\n"), HasSubstr("needs a tag"));
    EXPECT_THAT(fault_of("tag: [\n"), HasSubstr(".yaml:2: "));
    Description twice = read(kRuns);
    EXPECT_THROW(read_description(file_, twice), std::runtime_error);
}

TEST_F(DescriptionTest, ThePageEscapesAndLinks) {
    const Description read_in = read(
        "tag: T\nschemas: {A: {b: text!}}\n"
        "operations: {GET /x: {summary: a <b> & c, answer: {one: A!}}}\n");
    const std::string html = operations_html(read_in);
    EXPECT_THAT(html, HasSubstr("a &lt;b&gt; &amp; c"));
    EXPECT_THAT(html, HasSubstr("href=\"#schema-A\""));
    EXPECT_THAT(schemas_html(read_in), HasSubstr("id=\"schema-A\""));
}

}  // namespace
}  // namespace tune::openapi
