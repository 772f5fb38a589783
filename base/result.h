#pragma once
// Result<T>: a value or an Error. The names are those of std::expected, so that C++23 can take its
// place.

#include <optional>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/error.h"

namespace tune {

template <class T>
class [[nodiscard]] Result {
public:
    using value_type = T;

    Result(T value)
        : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit by design
    Result(Error error)
        : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit by design

    [[nodiscard]] bool has_value() const { return state_.index() == 0; }
    explicit operator bool() const { return has_value(); }

    /// REQUIRES: has_value().
    [[nodiscard]] T& value() & {
        TUNE_CHECK(has_value(), std::get_if<1>(&state_)->message);
        return *std::get_if<0>(&state_);
    }
    [[nodiscard]] const T& value() const& {
        TUNE_CHECK(has_value(), std::get_if<1>(&state_)->message);
        return *std::get_if<0>(&state_);
    }
    [[nodiscard]] T&& value() && { return std::move(value()); }

    [[nodiscard]] T& operator*() & { return value(); }
    [[nodiscard]] const T& operator*() const& { return value(); }
    [[nodiscard]] T&& operator*() && { return std::move(*this).value(); }
    [[nodiscard]] T* operator->() { return &value(); }
    [[nodiscard]] const T* operator->() const { return &value(); }
    [[nodiscard]] T value_or(T fallback) && {
        return has_value() ? std::move(*std::get_if<0>(&state_)) : std::move(fallback);
    }

    /// REQUIRES: !has_value().
    [[nodiscard]] const Error& error() const& {
        TUNE_CHECK(!has_value(), "error() of a Result that holds a value");
        return *std::get_if<1>(&state_);
    }
    [[nodiscard]] Error&& error() && {
        TUNE_CHECK(!has_value(), "error() of a Result that holds a value");
        return std::move(*std::get_if<1>(&state_));
    }

private:
    std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
public:
    using value_type = void;

    Result() = default;
    Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit by design

    [[nodiscard]] bool has_value() const { return !error_.has_value(); }
    explicit operator bool() const { return has_value(); }

    /// REQUIRES: has_value().
    void value() const { TUNE_CHECK(has_value(), error_->message); }

    /// REQUIRES: !has_value().
    [[nodiscard]] const Error& error() const& {
        TUNE_CHECK(!has_value(), "error() of a Result that holds a value");
        return *error_;
    }
    [[nodiscard]] Error&& error() && {
        TUNE_CHECK(!has_value(), "error() of a Result that holds a value");
        return std::move(*error_);
    }

private:
    std::optional<Error> error_;
};

}  // namespace tune

#define TUNE_CONCAT_INNER(a, b) a##b
#define TUNE_CONCAT(a, b) TUNE_CONCAT_INNER(a, b)

/// `TUNE_TRY(x, expr);` declares `x` with the value of the Result `expr`, or returns its error from
/// this function.
#define TUNE_TRY(name, ...) TUNE_TRY_IMPL(TUNE_CONCAT(tune_try_, __LINE__), name, __VA_ARGS__)
#define TUNE_TRY_IMPL(result, name, ...)           \
    auto result = (__VA_ARGS__);                   \
    if (!result) return std::move(result).error(); \
    auto name = std::move(result).value()

/// `TUNE_TRY_VOID(expr);` returns the error of a Result<void> (or drops the value of any other
/// Result).
#define TUNE_TRY_VOID(...)                                          \
    do {                                                            \
        if (auto tune_try_result = (__VA_ARGS__); !tune_try_result) \
            return std::move(tune_try_result).error();              \
    } while (false)
