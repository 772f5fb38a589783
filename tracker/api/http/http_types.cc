// Names of headers compare without regard to case, as HTTP wants. Errors carry the fields that
// MLflow 3.17.2 adds for some codes, because its clients look for them.

#include "tracker/api/http/http_types.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace tune::tracker {
namespace {

bool equal_ignoring_case(std::string_view a, std::string_view b) {
    const auto lower = [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [&](char x, char y) { return lower(x) == lower(y); });
}

struct ErrorClass {
    Code code;
    const char* sqlstate;
    const char* name;
};

/// The fields that MLflow 3.17.2 adds to the errors of these codes.
constexpr std::array kErrorClasses = {
    ErrorClass{Code::kInvalidParameterValue, "KAM00", "INVALID_PARAMETER_VALUE"},
    ErrorClass{Code::kBadRequest, "KAM00", "INVALID_PARAMETER_VALUE"},
    ErrorClass{Code::kResourceDoesNotExist, "KAM00", "RESOURCE_NOT_FOUND"},
    ErrorClass{Code::kEndpointNotFound, "KAM00", "RESOURCE_NOT_FOUND"},
    ErrorClass{Code::kResourceAlreadyExists, "KAM00", "RESOURCE_ALREADY_EXISTS"},
    ErrorClass{Code::kPermissionDenied, "KAM00", "PERMISSION_DENIED"},
    ErrorClass{Code::kInternalError, "XXM00", "CLIENT_INTERNAL_ERROR"},
    ErrorClass{Code::kInvalidState, "XXM00", "CLIENT_INTERNAL_ERROR"},
    ErrorClass{Code::kTemporarilyUnavailable, "XXM00", "CLIENT_INTERNAL_ERROR"},
};

}  // namespace

SpecialBody::SpecialBody() = default;
SpecialBody::SpecialBody(const SpecialBody&) = default;
SpecialBody::SpecialBody(SpecialBody&&) noexcept = default;
SpecialBody& SpecialBody::operator=(const SpecialBody&) = default;
SpecialBody& SpecialBody::operator=(SpecialBody&&) noexcept = default;
SpecialBody::~SpecialBody() = default;

std::string_view method_name(Method method) {
    static constexpr std::array<std::string_view, 7> kNames = {"GET",    "POST", "PUT",    "PATCH",
                                                               "DELETE", "HEAD", "OPTIONS"};
    return kNames[static_cast<std::size_t>(method)];
}

std::string_view Request::header(std::string_view name) const {
    for (const auto& [key, value] : headers)
        if (equal_ignoring_case(key, name)) return value;
    return {};
}

const std::string& Request::parameter(std::string_view name) const {
    static const std::string kNone;
    for (const auto& [key, value] : parameters)
        if (key == name) return value;
    return kNone;
}

std::optional<std::string_view> Request::query_value(std::string_view name) const {
    for (const auto& [key, value] : query)
        if (key == name) return value;
    return std::nullopt;
}

std::vector<std::string_view> Request::query_values(std::string_view name) const {
    std::vector<std::string_view> values;
    for (const auto& [key, value] : query)
        if (key == name) values.emplace_back(value);
    return values;
}

Response json_text_response(std::string text, int status) {
    Response response;
    response.status = status;
    response.content_type = "application/json";
    response.body = std::move(text);
    return response;
}

Response json_response(const Json& value, int status) {
    return json_text_response(to_text(value), status);
}

Response error_response(const Error& error) {
    Json body = {{"error_code", code_name(error.code)}, {"message", error.message}};
    for (const ErrorClass& row : kErrorClasses) {
        if (row.code != error.code) continue;
        body["sqlstate"] = row.sqlstate;
        body["error_class"] = row.name;
    }
    return json_response(body, http_status(error.code));
}

Response text_response(std::string text, int status) {
    Response response;
    response.status = status;
    response.content_type = "text/plain; charset=utf-8";
    response.body = std::move(text);
    return response;
}

}  // namespace tune::tracker
