#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/error.h"

namespace tune {
namespace {

Result<int> parse_digit(char c) {
    if (c < '0' || c > '9') return Error{Code::kInvalidParameterValue, "not a digit"};
    return c - '0';
}

Result<int> add(char a, char b) {
    TUNE_TRY(left, parse_digit(a));
    TUNE_TRY(right, parse_digit(b));
    return left + right;
}

Result<void> check_digit(char c) {
    TUNE_TRY_VOID(parse_digit(c));
    return {};
}

TEST(Result, TryPassesValuesOn) {
    EXPECT_EQ(add('2', '3').value(), 5);
}

TEST(Result, TryReturnsTheFirstError) {
    const Result<int> sum = add('2', 'x');
    ASSERT_FALSE(sum.has_value());
    EXPECT_EQ(sum.error().code, Code::kInvalidParameterValue);
    EXPECT_EQ(sum.error().message, "not a digit");
}

TEST(Result, VoidCarriesErrors) {
    EXPECT_TRUE(check_digit('1').has_value());
    EXPECT_FALSE(check_digit('x').has_value());
}

TEST(Result, HoldsTypesThatOnlyMove) {
    Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
    const std::unique_ptr<int> taken = std::move(result).value();
    EXPECT_EQ(*taken, 7);
}

TEST(Result, ReadingTheValueOfAnErrorAborts) {
    EXPECT_DEATH((void)add('x', '1').value(), "not a digit");
}

TEST(Code, NamesRoundTripAndStatusesAreMlflows) {
    EXPECT_EQ(code_name(Code::kResourceDoesNotExist), "RESOURCE_DOES_NOT_EXIST");
    EXPECT_EQ(code_from_name("RESOURCE_DOES_NOT_EXIST"), Code::kResourceDoesNotExist);
    EXPECT_EQ(code_from_name("SOMETHING_ELSE"), Code::kInternalError);
    EXPECT_EQ(http_status(Code::kResourceDoesNotExist), 404);
    EXPECT_EQ(http_status(Code::kResourceAlreadyExists), 400);
    EXPECT_EQ(http_status(Code::kRequestLimitExceeded), 429);
}

TEST(Error, TextNamesTheContextFirst) {
    EXPECT_EQ((Error{Code::kBadRequest, "no such key", "study.yaml:3"}).text(),
              "study.yaml:3: no such key");
    EXPECT_EQ((Error{Code::kBadRequest, "no such key"}).text(), "no such key");
}

}  // namespace
}  // namespace tune
