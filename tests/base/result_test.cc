#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

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

static_assert(std::is_copy_constructible_v<Result<std::string>>);
static_assert(!std::is_copy_constructible_v<Result<std::unique_ptr<int>>>);
static_assert(std::is_nothrow_move_constructible_v<Result<std::string>>);

TEST(Result, ACopyHasItsOwnValueAndItsOwnError) {
    Result<std::string> value = std::string("a value too long for the string's own buffer");
    const Result<std::string> copy = value;
    *value = "changed";
    EXPECT_EQ(*copy, "a value too long for the string's own buffer");

    Result<std::string> failed = Error{Code::kBadRequest, "why", "where"};
    const Result<std::string> same = failed;
    const Result<std::string> moved = std::move(failed);
    EXPECT_EQ(same.error().text(), "where: why");
    EXPECT_EQ(moved.error().text(), "where: why");
}

TEST(Result, AnAssignmentReleasesWhatWasHeld) {
    const auto held = std::make_shared<int>(7);
    Result<std::shared_ptr<int>> result = held;
    EXPECT_EQ(held.use_count(), 2);
    result = Error{Code::kBadRequest, "gone"};
    EXPECT_EQ(held.use_count(), 1);
    EXPECT_EQ(result.error().message, "gone");
    result = held;
    EXPECT_EQ(held.use_count(), 2);
    const Result<std::shared_ptr<int>> other = Error{Code::kBadRequest, "copied"};
    result = other;
    EXPECT_EQ(held.use_count(), 1);
    EXPECT_EQ(result.error().message, "copied");
}

TEST(Result, OfNothingIsAssignedToo) {
    Result<void> result;
    result = check_digit('x');
    EXPECT_EQ(result.error().message, "not a digit");
    const Result<void> copy = result;
    result = Result<void>();
    EXPECT_TRUE(result.has_value());
    EXPECT_EQ(copy.error().message, "not a digit");
}

TEST(Result, AnErrorThatMovedAwayIsNotRead) {
    EXPECT_DEATH(
        {
            Result<int> failed = add('x', '1');
            const Result<int> taken = std::move(failed);
            (void)failed.error();
        },
        "moved from");
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
