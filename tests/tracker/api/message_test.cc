// Reading requests: the forms that MLflow 3.17.2 accepts and the sentences it refuses others with;
// the fast parsers must agree with the slow way.

#include "tracker/api/http/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <vector>

#include "tracker/api/http/fast_parse.h"
#include "tracker/api/http/json_writer.h"

namespace tune::tracker {
namespace {

constexpr const char* kSeeDocs = " See the API docs for more information about request parameters.";

Request post_of(std::string body, std::string type = "application/json") {
    Request request;
    request.method = Method::kPost;
    request.headers.emplace_back("Content-Type", std::move(type));
    request.body = std::move(body);
    return request;
}

Message message_of(std::string body) {
    return Message::read(post_of(std::move(body))).value();
}

TEST(Message, ReadsBodiesOfAllForms) {
    EXPECT_EQ(*message_of(R"({"a_b": "x"})").text("a_b"), "x");
    EXPECT_EQ(*message_of(R"({"aB": "x"})").text("a_b"), "x");
    EXPECT_EQ(*message_of(R"("{\"a\": \"x\"}")").text("a"), "x") << "JSON in a JSON string";
    EXPECT_EQ(*message_of("").text("a"), "");
    EXPECT_EQ(*message_of("null").text("a"), "");
    EXPECT_EQ(*message_of(R"({"a": null})").text("a"), "");
    EXPECT_TRUE(Message::read(post_of("{}", "application/json; charset=utf-8")).has_value());
}

TEST(Message, RefusesOtherBodies) {
    const auto fault = [](std::string body, std::string type = "application/json") {
        return Message::read(post_of(std::move(body), std::move(type))).error();
    };
    EXPECT_EQ(fault("{}", "text/plain").message,
              "Bad Request. Content-Type must be one of ['application/json'].");
    EXPECT_EQ(fault("", "").code, Code::kInvalidParameterValue);
    EXPECT_THAT(fault("{\"a\": ").message, testing::HasSubstr("invalid JSON at line 1"));
    EXPECT_THAT(fault("[1]").message, testing::HasSubstr("must be a JSON object"));
    EXPECT_THAT(fault("\"{\"").message, testing::HasSubstr("invalid JSON"));
    EXPECT_THAT(fault(std::string(100'000, '[')).message, testing::HasSubstr("nested deeper"));
}

TEST(Message, ReadsQueries) {
    Request request;
    request.query = {{"run_id", "a"},
                     {"max_results", "5"},
                     {"run_ids", "x"},
                     {"run_ids", "y"},
                     {"flag", "True"}};
    const Message message = Message::read(request).value();
    EXPECT_EQ(*message.run_id(), "a");
    EXPECT_EQ(message.integer("max_results")->value(), 5);
    EXPECT_THAT(*message.texts("run_ids"), testing::ElementsAre("x", "y"));
    EXPECT_THAT(*message.texts("run_id"), testing::ElementsAre("a"));
    EXPECT_EQ(message.boolean("flag")->value(), true);
    request.query = {{"flag", "1"}};
    EXPECT_EQ(Message::read(request).value().boolean("flag").error().message,
              "Invalid boolean value: 1, must be 'true' or 'false'.");
}

TEST(Message, TakesTextsForBooleansOnlyFromAQuery) {
    EXPECT_EQ(message_of(R"({"flag": true})").boolean("flag")->value(), true);
    EXPECT_FALSE(message_of(R"({"flag": null})").boolean("flag")->has_value());
    for (const char* text : {"true", "True", "false", "", "maybe"})
        EXPECT_EQ(
            message_of(std::string(R"({"flag": ")") + text + "\"}").boolean("flag").error().message,
            std::string("Invalid value \"") + text +
                "\" for parameter 'flag' supplied:  Hint: Value was of type 'str'." + kSeeDocs);
    for (const char* other : {"0", "1", "[]", "{}"})
        EXPECT_FALSE(message_of(std::string(R"({"flag": )") + other + "}").boolean("flag"));
}

TEST(Message, NamesMissingAndWrongFields) {
    const Message message = message_of(R"({"text": 5, "number": "x", "list": {"a": 1}, "real": 1.5,
                                          "empty": "", "flag": true})");
    EXPECT_EQ(message.required_text("absent").error().message,
              std::string("Missing value for required parameter 'absent'.") + kSeeDocs);
    EXPECT_EQ(message.required_text("empty").error().message,
              std::string("Missing value for required parameter 'empty'.") + kSeeDocs);
    EXPECT_EQ(message.text("text").error().message,
              std::string("Invalid value 5 for parameter 'text' supplied:  Hint: Value was of type "
                          "'int'.") +
                  kSeeDocs);
    EXPECT_EQ(message.integer("number").error().message,
              std::string("Invalid value \"x\" for parameter 'number' supplied:  Hint: Value was "
                          "of type 'str'.") +
                  kSeeDocs);
    EXPECT_THAT(message.integer("real").error().message, testing::HasSubstr("'float'"));
    EXPECT_THAT(message.texts("list").error().message, testing::HasSubstr("'dict'"));
    EXPECT_THAT(message.required_number("flag").error().message, testing::HasSubstr("'bool'"));
    EXPECT_EQ(Message::read(post_of(R"({"max_results": 1, "maxResults": 2})")).error().message,
              "Request specifies both 'max_results' and 'maxResults'; provide only one of them.");
}

TEST(Message, ReadsNumbersAsProtobufDoes) {
    const Message message = message_of(
        R"({"a": "7", "b": 7.0, "c": -9223372036854775808, "d": 9223372036854775808, "e": "NaN",
            "f": "-Infinity", "g": "1e3", "h": "", "j": "7x"})");
    EXPECT_EQ(message.integer("a")->value(), 7);
    EXPECT_EQ(message.integer("b")->value(), 7);
    EXPECT_EQ(message.integer("c")->value(), INT64_MIN);
    EXPECT_FALSE(message.integer("d").has_value());
    EXPECT_FALSE(message.integer("j").has_value());
    EXPECT_TRUE(std::isnan(*message.required_number("e")));
    EXPECT_EQ(*message.required_number("f"), -INFINITY);
    EXPECT_EQ(*message.required_number("g"), 1000);
    EXPECT_FALSE(message.required_number("h").has_value());
    EXPECT_FALSE(Message::read(post_of("{\"i\": 1e400}")).has_value());
}

TEST(Message, NamesThePlaceInAList) {
    const Message message =
        message_of(R"({"metrics": [{"key": "a", "value": 1, "timestamp": 2}, {"key": "b",
                   "value": 1}], "tags": [{"value": "x"}]})");
    const auto metrics = message.messages("metrics").value();
    EXPECT_TRUE(metrics[0].metric().has_value());
    EXPECT_EQ(
        metrics[1].metric().error().message,
        std::string("Missing value for required parameter 'metrics[1].timestamp'.") + kSeeDocs);
    EXPECT_EQ(message.tags("tags").error().message,
              std::string("Missing value for required parameter 'tags[0].key'.") + kSeeDocs);
}

TEST(Message, ReadsEnumsByNameAndNumber) {
    const Message message =
        message_of(R"({"v": "ALL", "w": 2, "x": "SOME", "s": "FINISHED", "t": 1, "u": 9,
                   "m": "LOGGED_MODEL_READY"})");
    EXPECT_EQ(message.view_type("v")->value(), ViewType::kAll);
    EXPECT_EQ(message.view_type("w")->value(), ViewType::kDeletedOnly);
    EXPECT_FALSE(message.view_type("x").has_value());
    EXPECT_EQ(message.run_status("s")->value(), RunStatus::kFinished);
    EXPECT_EQ(message.run_status("t")->value(), RunStatus::kRunning);
    EXPECT_FALSE(message.run_status("u").has_value());
    EXPECT_EQ(message.model_status("m")->value(), LoggedModelStatus::kReady);
}

TEST(FastParse, NumbersOfManyDigitsAreTheirOwn) {
    std::mt19937 random(7);
    std::vector<std::string> numbers = {
        "0.184467440737095516165",         "0.3333333333333333333333",
        "-0.99999999999999999999999",      "0.00012345678901234567",
        "18446744073709551616.5",          "123456789012345678901234567890",
        "0.00000000000000000000000000001", "1.7976931348623157081e308",
        "4.9406564584124654418e-324",      "0." + std::string(400, '3') + "e10"};
    for (int i = 0; i < 2000; ++i) {
        std::string number = i % 3 == 0 ? "0." : std::to_string(random() % 10) + ".";
        for (auto digits = 1 + random() % 30; digits > 0; --digits)
            number += static_cast<char>('0' + random() % 10);
        if (i % 4 == 0) number += "e" + std::to_string(static_cast<int>(random() % 600) - 320);
        numbers.push_back(std::move(number));
    }
    for (const std::string& number : numbers) {
        std::string body =
            R"({"run_id": "a", "key": "k", "timestamp": 1, "value": )" + number + " }";
        const double expected = std::strtod(number.c_str(), nullptr);
        const auto command = parse_log_metric_fast(body);
        if (std::isinf(expected)) continue;  // the slow way has the sentence
        ASSERT_TRUE(command) << number;
        EXPECT_EQ(command->metric.value, expected) << number;
    }
}

TEST(FastParse, ReadsTheUsualMetric) {
    std::string body =
        R"({"run_uuid": "r", "run_id": "r", "key": "lo\u00dfs", "value": 0.25, "timestamp": 17,
            "step": -3, "model_id": "m-1", "dataset_name": "d", "dataset_digest": "e"})";
    const auto command = parse_log_metric_fast(body);
    ASSERT_TRUE(command.has_value());
    EXPECT_EQ(command->run_id, "r");
    EXPECT_EQ(command->metric.key, "lo\u00dfs");
    EXPECT_EQ(command->metric.value, 0.25);
    EXPECT_EQ(command->metric.timestamp_ms, 17);
    EXPECT_EQ(command->metric.step, -3);
    EXPECT_EQ(command->metric.model_id, "m-1");
    EXPECT_EQ(command->metric.dataset_digest, "e");
    body = R"({"run_uuid": "old", "key": "k", "value": "NaN", "timestamp": 1})";
    EXPECT_TRUE(std::isnan(parse_log_metric_fast(body).value().metric.value));
}

TEST(FastParse, ReadsTheUsualBatch) {
    std::string body =
        R"({"run_id": "r", "metrics": [{"key": "a", "value": 1, "timestamp": 2, "step": 3},
            {"key": "b", "value": "-Infinity", "timestamp": 2}],
            "params": [{"key": "p", "value": ""}], "tags": [{"key": "t", "value": "v"}]})";
    const auto command = parse_log_batch_fast(body);
    ASSERT_TRUE(command.has_value());
    ASSERT_EQ(command->metrics.size(), 2u);
    EXPECT_EQ(command->metrics[1].value, -INFINITY);
    EXPECT_EQ(command->metrics[1].step, 0);
    EXPECT_EQ(command->params[0].key, "p");
    EXPECT_EQ(command->tags[0].value, "v");
}

/// What is not in the usual form goes the slow way, whatever it is.
TEST(FastParse, LeavesEverythingElseToTheSlowWay) {
    for (const char* text :
         {"",
          "{",
          "[]",
          "null",
          "1",
          R"("{}")",
          R"({"run_id": "r"})",
          R"({"run_id": "r", "key": "k", "value": 1})",
          R"({"run_id": "", "key": "k", "value": 1, "timestamp": 1})",
          R"({"run_id": "r", "key": "", "value": 1, "timestamp": 1})",
          R"({"run_id": "r", "key": "k", "value": true, "timestamp": 1})",
          R"({"run_id": "r", "key": "k", "value": "x", "timestamp": 1})",
          R"({"run_id": "r", "key": "k", "value": 1, "timestamp": 1.5})",
          R"({"run_id": "r", "key": "k", "value": 1, "timestamp": "1"})",
          R"({"run_id": "r", "key": "k", "value": 1, "timestamp": 1, "unknown": 1})",
          R"({"runId": "r", "key": "k", "value": 1, "timestamp": 1})",
          R"({"run_id": 5, "key": "k", "value": 1, "timestamp": 1})",
          R"({"run_id": "r", "key": "k", "value": 1, "timestamp": 1}})",
          R"({"run_id": "r", "key": "k", "value": 1, "timestamp": 1} {})",
          "{\"run_id\": \"r\xff\", \"key\": \"k\", \"value\": 1, \"timestamp\": 1}"}) {
        std::string body = text;
        EXPECT_FALSE(parse_log_metric_fast(body).has_value()) << text;
    }
    for (const char* text : {R"({"metrics": []})", R"({"run_id": "r", "metrics": {}})",
                             R"({"run_id": "r", "metrics": [1]})",
                             R"({"run_id": "r", "metrics": [{"key": "k", "value": 1}]})",
                             R"({"run_id": "r", "params": [{"value": "v"}]})",
                             R"({"run_id": "r", "tags": [{"key": "k", "value": 1}]})"}) {
        std::string body = text;
        EXPECT_FALSE(parse_log_batch_fast(body).has_value()) << text;
    }
}

TEST(JsonWriter, EscapesAndRepairsText) {
    JsonWriter out;
    out.begin_array().text("a\"\\\n\r\t\x01\x7f/ü日😀");
    out.text("bad \xff \xc3( \xed\xa0\x80 \xf5 end\xe2\x82").end_array();
    const std::string text = out.take();
    const Json parsed = parse_json(text).value();
    EXPECT_EQ(parsed[0], "a\"\\\n\r\t\x01\x7f/ü日😀");
    EXPECT_THAT(parsed[1].get<std::string>(), testing::StartsWith("bad \ufffd \ufffd( "));
}

TEST(JsonWriter, WritesNumbersThatComeBackTheSame) {
    for (const double value : {0.0, -0.0, 1.0, 0.1, 1e300, 5e-324, 123456789.123, 1e21, -2.5}) {
        JsonWriter out;
        out.real(value);
        const std::string text = out.take();
        EXPECT_EQ(parse_json(text)->get<double>(), value) << text;
        EXPECT_TRUE(parse_json(text)->is_number_float()) << text;
    }
    JsonWriter out;
    out.begin_object().key("a").real(NAN).key("b").real(INFINITY).key("c").real(-INFINITY);
    out.key("d").begin_array().integer(INT64_MIN).boolean(true).end_array().end_object();
    EXPECT_EQ(out.take(), R"({"a":"NaN","b":"Infinity","c":"-Infinity",)"
                          R"("d":[-9223372036854775808,true]})");
}

}  // namespace
}  // namespace tune::tracker
