#include "tracker/http/protocol/response_head.h"

#include <charconv>

namespace tune::tracker {
namespace {

void append_number(std::string& out, std::uint64_t value) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    out.append(digits, end);
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
    out.append(name).append(": ");
    for (const char c : value)
        if (c != '\r' && c != '\n' && c != '\0') out.push_back(c);
    out.append("\r\n");
}

bool has_field(const Response& response, std::string_view name) {
    for (const auto& [key, value] : response.headers)
        if (key == name) return true;
    return false;
}

}  // namespace

Response parse_error_response(int status, std::string text) {
    const Code code = status == 413 ? Code::kRequestEntityTooLarge : Code::kBadRequest;
    Response response = error_response({code, std::move(text)});
    response.status = status;
    if (status == 405)
        response.headers.emplace_back("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    return response;
}

std::string_view reason_phrase(int status) {
    switch (status) {
        case 200: return "OK";
        case 201: return "Created";
        case 204: return "No Content";
        case 206: return "Partial Content";
        case 304: return "Not Modified";
        case 400: return "Bad Request";
        case 401: return "Unauthorized";
        case 403: return "Forbidden";
        case 404: return "Not Found";
        case 405: return "Method Not Allowed";
        case 408: return "Request Timeout";
        case 409: return "Conflict";
        case 413: return "Content Too Large";
        case 415: return "Unsupported Media Type";
        case 416: return "Range Not Satisfiable";
        case 429: return "Too Many Requests";
        case 431: return "Request Header Fields Too Large";
        case 499: return "Client Closed Request";
        case 500: return "Internal Server Error";
        case 501: return "Not Implemented";
        case 503: return "Service Unavailable";
        case 504: return "Gateway Timeout";
        case 505: return "HTTP Version Not Supported";
        default: return "Status";
    }
}

void append_head(std::string& out, const Response& response, const HeadOptions& options) {
    out.append("HTTP/1.1 ");
    append_number(out, static_cast<std::uint64_t>(options.status));
    out.append(" ").append(reason_phrase(options.status)).append("\r\n");
    if (!response.content_type.empty() && options.status != 304)
        append_field(out, "Content-Type", response.content_type);
    if (options.content_length && options.status != 204 && options.status != 304) {
        out.append("Content-Length: ");
        append_number(out, *options.content_length);
        out.append("\r\n");
    }
    if (!response.etag.empty()) append_field(out, "ETag", response.etag);
    for (const auto& [name, value] : response.headers) append_field(out, name, value);
    if (!has_field(response, "Cache-Control")) out.append("Cache-Control: no-cache\r\n");
    out.append(
        "X-Content-Type-Options: nosniff\r\n"
        "X-Frame-Options: SAMEORIGIN\r\n"
        "Referrer-Policy: same-origin\r\n");
    if (!options.keep_alive) out.append("Connection: close\r\n");
    out.append("\r\n");
}

}  // namespace tune::tracker
