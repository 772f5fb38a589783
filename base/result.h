#pragma once
// Result<T>: a value or an Error. The names are those of std::expected, so that C++23 can take its
// place.
//
// Thousands of functions return one, so that what each of them compiles counts: the error stands on
// the heap, and everything that happens to it only where something failed is a call of result.cc. A
// std::variant<T, Error> compiles to some forty functions for each T.

#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace tune {

/// What Result does with its error; null is an error that was moved to another Result.
namespace boxed_error {
[[gnu::cold]] Error* make(Error&& error);
[[gnu::cold]] Error* copy(const Error* error);
[[gnu::cold]] void drop(Error* error) noexcept;
[[noreturn, gnu::cold]] void fail_without_value(const Error* error);
[[noreturn, gnu::cold]] void fail_without_error();
}  // namespace boxed_error

template <class T>
class [[nodiscard]] Result {
public:
    using value_type = T;

    Result(T value) : has_value_(true), value_(std::move(value)) {}  // NOLINT: implicit by design
    Result(Error&& error)                                            // NOLINT: implicit by design
        : has_value_(false), error_(boxed_error::make(std::move(error))) {}
    Result(const Error& error) : Result(Error(error)) {}  // NOLINT: implicit by design

    Result(Result&& other) noexcept(std::is_nothrow_move_constructible_v<T>)
        : has_value_(other.has_value_) {
        take(std::move(other));
    }
    Result(const Result& other) requires std::is_copy_constructible_v<T>
        : has_value_(other.has_value_) {
        if (has_value_) {
            ::new (static_cast<void*>(std::addressof(value_))) T(other.value_);
        } else {
            error_ = boxed_error::copy(other.error_);
        }
    }
    Result& operator=(Result&& other) noexcept {
        if (this != &other) {
            destroy();
            has_value_ = other.has_value_;
            take(std::move(other));
        }
        return *this;
    }
    Result& operator=(const Result& other) requires std::is_copy_constructible_v<T> {
        return *this = Result(other);
    }
    ~Result() { destroy(); }

    [[nodiscard]] bool has_value() const { return has_value_; }
    explicit operator bool() const { return has_value_; }

    /// REQUIRES: has_value().
    [[nodiscard]] T& value() & {
        if (!has_value_) boxed_error::fail_without_value(error_);
        return value_;
    }
    [[nodiscard]] const T& value() const& {
        if (!has_value_) boxed_error::fail_without_value(error_);
        return value_;
    }
    [[nodiscard]] T&& value() && { return std::move(value()); }

    [[nodiscard]] T& operator*() & { return value(); }
    [[nodiscard]] const T& operator*() const& { return value(); }
    [[nodiscard]] T&& operator*() && { return std::move(*this).value(); }
    [[nodiscard]] T* operator->() { return std::addressof(value()); }
    [[nodiscard]] const T* operator->() const { return std::addressof(value()); }
    [[nodiscard]] T value_or(T fallback) && {
        return has_value_ ? std::move(value_) : std::move(fallback);
    }

    /// REQUIRES: !has_value().
    [[nodiscard]] const Error& error() const& {
        if (has_value_ || error_ == nullptr) boxed_error::fail_without_error();
        return *error_;
    }
    [[nodiscard]] Error&& error() && {
        if (has_value_ || error_ == nullptr) boxed_error::fail_without_error();
        return std::move(*error_);
    }

private:
    void take(Result&& other) noexcept(std::is_nothrow_move_constructible_v<T>) {
        if (has_value_) {
            ::new (static_cast<void*>(std::addressof(value_))) T(std::move(other.value_));
        } else {
            error_ = std::exchange(other.error_, nullptr);
        }
    }
    void destroy() noexcept {
        if (has_value_) {
            value_.~T();
        } else {
            boxed_error::drop(error_);
        }
    }

    bool has_value_;
    union {
        T value_;
        Error* error_;
    };
};

template <>
class [[nodiscard]] Result<void> {
public:
    using value_type = void;

    Result() = default;
    Result(Error&& error)  // NOLINT: implicit by design
        : has_value_(false), error_(boxed_error::make(std::move(error))) {}
    Result(const Error& error) : Result(Error(error)) {}  // NOLINT: implicit by design

    Result(Result&& other) noexcept
        : has_value_(other.has_value_), error_(std::exchange(other.error_, nullptr)) {}
    Result(const Result& other)
        : has_value_(other.has_value_),
          error_(has_value_ ? nullptr : boxed_error::copy(other.error_)) {}
    Result& operator=(Result&& other) noexcept {
        std::swap(has_value_, other.has_value_);
        std::swap(error_, other.error_);
        return *this;
    }
    Result& operator=(const Result& other) { return *this = Result(other); }
    ~Result() {
        if (error_ != nullptr) boxed_error::drop(error_);
    }

    [[nodiscard]] bool has_value() const { return has_value_; }
    explicit operator bool() const { return has_value_; }

    /// REQUIRES: has_value().
    void value() const {
        if (!has_value_) boxed_error::fail_without_value(error_);
    }

    /// REQUIRES: !has_value().
    [[nodiscard]] const Error& error() const& {
        if (error_ == nullptr) boxed_error::fail_without_error();
        return *error_;
    }
    [[nodiscard]] Error&& error() && {
        if (error_ == nullptr) boxed_error::fail_without_error();
        return std::move(*error_);
    }

private:
    bool has_value_ = true;
    Error* error_ = nullptr;
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
