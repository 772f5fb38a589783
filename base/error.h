#pragma once
// The error vocabulary of the whole project. Codes are MLflow's REST error codes, so that an error
// made anywhere can be answered on the wire without translation.

#include <string>
#include <string_view>

namespace tune {

/// MLflow's REST error codes (mlflow 3.17.2, `error_code` in error bodies). `http_status` gives
/// each one's status.
enum class Code {
    kInternalError,
    kInvalidState,
    kDataLoss,
    kNotImplemented,
    kTemporarilyUnavailable,
    kDeadlineExceeded,
    kCancelled,
    kRequestLimitExceeded,
    kResourceExhausted,
    kRequestEntityTooLarge,
    kResourceConflict,
    kResourceDoesNotExist,
    kEndpointNotFound,
    kPermissionDenied,
    kUnauthenticated,
    kBadRequest,
    kResourceAlreadyExists,
    kInvalidParameterValue,
};

/// What went wrong (`message`: one clear sentence for the user) and where (`context`: a file, line
/// or request; may be empty).
struct Error {
    Code code = Code::kInternalError;
    std::string message;
    std::string context = {};

    /// "context: message", or the message alone when there is no context.
    [[nodiscard]] std::string text() const;
};

/// What the caller asked for is wrong: kInvalidParameterValue with `message`.
[[nodiscard]] Error invalid_parameter(std::string message);

/// What was stored or sent is not what was written: kDataLoss with `message`.
[[nodiscard]] Error data_loss(std::string message);

/// The name on the wire, e.g. "RESOURCE_DOES_NOT_EXIST".
[[nodiscard]] std::string_view code_name(Code code);

/// The code with this wire name; kInternalError for an unknown name.
[[nodiscard]] Code code_from_name(std::string_view name);

/// The HTTP status MLflow answers with for `code` (RESOURCE_ALREADY_EXISTS is 400, as in MLflow).
[[nodiscard]] int http_status(Code code);

}  // namespace tune
