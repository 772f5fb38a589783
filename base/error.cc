#include "base/error.h"

#include <array>
#include <utility>

namespace tune {
namespace {

struct CodeRow {
    Code code;
    std::string_view name;
    int status;
};

constexpr std::array kCodes = {
    CodeRow{Code::kInternalError, "INTERNAL_ERROR", 500},
    CodeRow{Code::kInvalidState, "INVALID_STATE", 500},
    CodeRow{Code::kDataLoss, "DATA_LOSS", 500},
    CodeRow{Code::kNotImplemented, "NOT_IMPLEMENTED", 501},
    CodeRow{Code::kTemporarilyUnavailable, "TEMPORARILY_UNAVAILABLE", 503},
    CodeRow{Code::kDeadlineExceeded, "DEADLINE_EXCEEDED", 504},
    CodeRow{Code::kCancelled, "CANCELLED", 499},
    CodeRow{Code::kRequestLimitExceeded, "REQUEST_LIMIT_EXCEEDED", 429},
    CodeRow{Code::kResourceExhausted, "RESOURCE_EXHAUSTED", 429},
    CodeRow{Code::kRequestEntityTooLarge, "REQUEST_ENTITY_TOO_LARGE", 413},
    CodeRow{Code::kResourceConflict, "RESOURCE_CONFLICT", 409},
    CodeRow{Code::kResourceDoesNotExist, "RESOURCE_DOES_NOT_EXIST", 404},
    CodeRow{Code::kEndpointNotFound, "ENDPOINT_NOT_FOUND", 404},
    CodeRow{Code::kPermissionDenied, "PERMISSION_DENIED", 403},
    CodeRow{Code::kUnauthenticated, "UNAUTHENTICATED", 401},
    CodeRow{Code::kBadRequest, "BAD_REQUEST", 400},
    CodeRow{Code::kResourceAlreadyExists, "RESOURCE_ALREADY_EXISTS", 400},
    CodeRow{Code::kInvalidParameterValue, "INVALID_PARAMETER_VALUE", 400},
};

}  // namespace

std::string Error::text() const {
    return context.empty() ? message : context + ": " + message;
}

Error invalid_parameter(std::string message) {
    return {Code::kInvalidParameterValue, std::move(message)};
}

Error data_loss(std::string message) {
    return {Code::kDataLoss, std::move(message)};
}

std::string_view code_name(Code code) {
    for (const CodeRow& row : kCodes)
        if (row.code == code) return row.name;
    return "INTERNAL_ERROR";
}

Code code_from_name(std::string_view name) {
    for (const CodeRow& row : kCodes)
        if (row.name == name) return row.code;
    return Code::kInternalError;
}

int http_status(Code code) {
    for (const CodeRow& row : kCodes)
        if (row.code == code) return row.status;
    return 500;
}

}  // namespace tune
