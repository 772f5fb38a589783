#include "base/result.h"

namespace tune::boxed_error {

Error* make(Error&& error) {
    return new Error(std::move(error));
}

Error* copy(const Error* error) {
    return error == nullptr ? nullptr : new Error(*error);
}

void drop(Error* error) noexcept {
    delete error;
}

void fail_without_value(const Error* error) {
    check_failed("has_value()", error == nullptr ? "a Result that was moved from" : error->message);
}

void fail_without_error() {
    check_failed("!has_value()", "error() of a Result that holds a value or was moved from");
}

}  // namespace tune::boxed_error
