#include "tuner/space/inline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tuner/config/study_config.h"

namespace tune::tuner {
namespace {

std::string spec(const std::string& word) {
    const Result<InlineParameter> parsed = parse_inline_parameter(word);
    return parsed ? parsed->name + " " + to_text(to_json(parsed->spec)) : parsed.error().message;
}

TEST(Inline, Ranges) {
    EXPECT_EQ(spec("lr=1e-5..1e-1:log"), R"(lr {"float":[1e-05,0.1],"log":true})");
    EXPECT_EQ(spec("x=0..1"), R"(x {"float":[0.0,1.0]})");
    EXPECT_EQ(spec("x=-5..+5"), R"(x {"float":[-5.0,5.0]})");
    EXPECT_EQ(spec("x=0...5"), R"(x {"float":[0.0,0.5]})");
    EXPECT_EQ(spec("batch=32..1024:int:log:32"),
              R"(batch {"int":[32.0,1024.0],"log":true,"step":32})");
    EXPECT_EQ(spec("x=0..1:0.25@0.5"), R"(x {"float":[0.0,1.0],"init":0.5,"step":0.25})");
    EXPECT_EQ(spec("x=0..1@0.5:0.25"), R"(x {"float":[0.0,1.0],"init":0.5,"step":0.25})");
}

TEST(Inline, Lists) {
    EXPECT_EQ(spec("opt=sgd,adamw"), R"(opt {"choice":["sgd","adamw"]})");
    EXPECT_EQ(spec("n=1,2.5,true,null,x"), R"(n {"choice":[1,2.5,true,null,"x"]})");
    EXPECT_EQ(spec(R"(v="1","a,b",[1,2])"), R"(v {"choice":["1","a,b",[1,2]]})");
    EXPECT_EQ(spec("depth=18<34<50"), R"(depth {"ordinal":[18,34,50]})");
    EXPECT_EQ(spec("depth=18,34,50:ord@34"), R"(depth {"init":34,"ordinal":[18,34,50]})");
}

TEST(Inline, Constants) {
    EXPECT_EQ(spec("seed==1"), R"(seed {"const":1})");
    EXPECT_EQ(spec("tag==a:b@c"), R"(tag {"const":"a:b@c"})");
    EXPECT_EQ(spec("tag==x?opt=sgd"), R"(tag {"const":"x","when":{"opt":"sgd"}})");
    EXPECT_EQ(spec("tag==x:if(opt=sgd)"), R"(tag {"const":"x","when":{"opt":"sgd"}})");
}

TEST(Inline, Conditions) {
    EXPECT_EQ(spec("m=0..0.99?opt=sgd"), R"(m {"float":[0.0,0.99],"when":{"opt":"sgd"}})");
    EXPECT_EQ(spec("m=0..1?opt=sgd|adam&n=3"),
              R"(m {"float":[0.0,1.0],"when":{"n":3,"opt":["sgd","adam"]}})");
    EXPECT_EQ(spec("m=0..1:if(n>=3):if(n<8):log"),
              R"(m {"float":[0.0,1.0],"log":true,"when":{"n":{"<":8,">=":3}}})");
    EXPECT_EQ(spec("m=0..1?b=[1,2]"), R"(m {"float":[0.0,1.0],"when":{"b":[[1,2]]}})");
    EXPECT_EQ(spec("m=0..1?a==x"), R"(m {"float":[0.0,1.0],"when":{"a":"x"}})");
}

TEST(Inline, ErrorsNameTheColumnAndWhatWasExpected) {
    const std::pair<const char*, const char*> cases[] = {
        {"lr", "in 'lr', column 1: expected NAME=SPEC, such as lr=1e-5..1e-1:log"},
        {"=1", "in '=1', column 1: expected NAME=SPEC, such as lr=1e-5..1e-1:log"},
        {"1x=0..1",
         "in '1x=0..1', column 1: the name '1x' is not usable; expected a letter or '_', then "
         "letters, digits, '_', '-', '.', '/'"},
        {"lr=1e-5",
         "in 'lr=1e-5', column 4: a single value; expected a range a..b, a list a,b,c, or '==1e-5' "
         "for a constant"},
        {"lr=",
         "in 'lr=', column 4: expected a range a..b, a list a,b,c, an ordered list a<b<c or, "
         "after '==', a constant"},
        {"lr=1..a",
         "in 'lr=1..a', column 4: expected a range of two numbers such as 1e-5..1e-1, found "
         "'1..a'"},
        {"lr=0..1:lgo",
         "in 'lr=0..1:lgo', column 9: unknown flag 'lgo'; expected log, int, ord, if(name=value), "
         "normal(mean,deviation), lognormal(median,deviation), weights(a,b) or a number (the "
         "step); did you mean 'log'?"},
        {"n=1.5..4:int", "in 'n=1.5..4:int', column 3: ':int' needs integer ends, found '1.5..4'"},
        {"a=1,,2", "in 'a=1,,2', column 5: a value of the list is empty"},
        {"a=1,2<3", "in 'a=1,2<3', column 3: ',' and '<' are mixed; a list is a,b,c or a<b<c"},
        {"a=1,2:log",
         "in 'a=1,2:log', column 3: log, int and a step belong to a range a..b, not to a list"},
        {"a=0..1:ord", "in 'a=0..1:ord', column 3: ':ord' belongs to a list a,b,c, not to a range"},
        {"m=0..1?opt",
         "in 'm=0..1?opt', column 8: expected a condition such as opt=sgd or depth>=3"},
        {"m=0..1?opt=", "in 'm=0..1?opt=', column 12: expected a value after '='"},
        {"m=0..1?a=1&a=2",
         "in 'm=0..1?a=1&a=2', column 12: a second condition on 'a'; expected "
         "name=value|other for any of several"},
        {"m=0..1:if(a=1",
         "in 'm=0..1:if(a=1', column 8: ':if(' is not closed; expected ':if(name=value)'"},
        {"m=0..1@", "in 'm=0..1@', column 8: expected the first value after '@'"},
        {"m=0..1@1@2", "in 'm=0..1@1@2', column 10: a second first value"},
        {"m=0..1:1:2", "in 'm=0..1:1:2', column 10: a second step"},
        {"s==", "in 's==', column 4: expected a value after '=='"},
    };
    for (const auto& [word, message] : cases) EXPECT_EQ(spec(word), message);
}

TEST(Inline, ValuesKeepTheirColumns) {
    const Result<InlineParameter> parsed = parse_inline_parameter("lr=1e-5..1e-1:log@3e-4?opt=sgd");
    ASSERT_TRUE(parsed);
    const auto column = [](const Node* node) { return node == nullptr ? 0 : node->place.column; };
    const Node& spec = parsed->spec;
    EXPECT_EQ(spec.place.column, 4u);
    EXPECT_EQ(spec.place.line, 0u);
    ASSERT_EQ(column(spec.find("float")), 4u);
    EXPECT_EQ(column(&spec.find("float")->items.at(1)), 10u);
    EXPECT_EQ(column(spec.find("init")), 19u);
    EXPECT_EQ(column(spec.find("when")->find("opt")), 28u);
    const Result<InlineParameter> derived = parse_inline_parameter("scaled:=lr*2");
    ASSERT_TRUE(derived);
    EXPECT_TRUE(derived->is_derived);
    EXPECT_EQ(derived->spec.text, "lr*2");
    EXPECT_EQ(derived->spec.place.column, 9u);
}

TEST(Inline, DeepValuesAreRefusedWhereTheyStand) {
    const auto nested = [](std::size_t levels) {
        return spec("a=1," + std::string(levels, '[') + std::string(levels, ']'));
    };
    EXPECT_THAT(nested(62), testing::StartsWith("a {\"choice\":[1,[[[["));
    EXPECT_THAT(nested(63), testing::HasSubstr("column 3: a value is nested too deeply"));
    EXPECT_THAT(nested(64), testing::HasSubstr("column 3: a value is nested too deeply"));
    // What parse_json does not take is a text.
    EXPECT_THAT(nested(65), testing::StartsWith("a {\"choice\":[1,\"[[[["));
}

TEST(Inline, HugeAndBinaryWordsAreRefusedNotFatal) {
    EXPECT_FALSE(parse_inline_parameter("x=" + std::string(100'000, '[')));
    EXPECT_FALSE(parse_inline_parameter("x=" + std::string(60'000, '[')));
    EXPECT_FALSE(parse_inline_parameter(std::string("x=\0..1", 7)));
    for (int c = 0; c < 256; ++c)
        for (int d = 0; d < 256; ++d) {
            const char tail[] = {static_cast<char>(c), static_cast<char>(d)};
            (void)parse_inline_parameter("x=" + std::string(tail, 2));
            (void)parse_inline_parameter("x=0..1" + std::string(tail, 2));
        }
}

TEST(Inline, AddsToAndReplacesTheParametersOfTheFile) {
    StudySource source;
    source.text = "space: {lr: {float: [0, 1]}, m: {float: [0, 1]}}";
    source.inline_parameters = {"lr=1..2", "opt=a,b"};
    const Space space = read_study(source).value().space;
    ASSERT_EQ(space.size(), 3u);
    EXPECT_EQ(space[0].low, 1);
    EXPECT_EQ(space[2].name, "opt");
    source.inline_parameters = {"lr=1..2", "lr=3..4"};
    EXPECT_FALSE(read_study(source));
}

}  // namespace
}  // namespace tune::tuner
