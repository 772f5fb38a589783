// Beast's parser calls back for each part; what it would accept and we must not (two Host headers,
// two lengths, other transfer codings) is refused in the callbacks, since a proxy in front may read
// such a request differently (request smuggling). Header bytes are bounded before they are stored.

#include "tracker/http/protocol/request_parser.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include "base/text/percent.h"
#include "tracker/api/http/url.h"

namespace tune::tracker {
namespace {

namespace http = boost::beast::http;
using ErrorCode = boost::beast::error_code;
using Text = boost::beast::string_view;

std::string_view view(Text text) {
    return {text.data(), text.size()};
}

std::optional<Method> method_of(http::verb verb) {
    switch (verb) {
        case http::verb::get: return Method::kGet;
        case http::verb::post: return Method::kPost;
        case http::verb::put: return Method::kPut;
        case http::verb::patch: return Method::kPatch;
        case http::verb::delete_: return Method::kDelete;
        case http::verb::head: return Method::kHead;
        case http::verb::options: return Method::kOptions;
        default: return std::nullopt;
    }
}

struct ParseError {
    int status = 0;
    std::string text;
};

/// Beast's events, put into a Request.
class Parser final : public http::basic_parser<true> {
public:
    explicit Parser(std::shared_ptr<Request> request) : request_(std::move(request)) {}

    std::string_view chunk_;
    bool header_done_ = false;
    bool expects_continue_ = false;
    int version_ = 11;
    ParseError error_;

private:
    void on_request_impl(http::verb verb, Text, Text target, int version, ErrorCode& ec) override {
        version_ = version;
        const std::optional<Method> method = method_of(verb);
        std::string_view text = view(target);
        if (!method) return refuse(ec, 405, "No path of this server has this method.");
        if (!text.starts_with('/'))
            return refuse(ec, 400, "The request target must be a path that begins with '/'.");
        request_->method = *method;
        const std::size_t question = text.find('?');
        if (question != std::string_view::npos) {
            request_->query = parse_query(text.substr(question + 1));
            text = text.substr(0, question);
        }
        request_->raw_path = text;
        request_->path = percent_decode(text);
    }

    void on_field_impl(http::field field, Text name, Text value, ErrorCode& ec) override {
        if (header_done_) return;  // trailers: nothing may be smuggled in behind the checks
        if (field == http::field::host) {
            if (has_host_) return refuse(ec, 400, "The request has two Host headers.");
            has_host_ = true;
        }
        if (field == http::field::content_length) {
            // Equal ones too: a proxy in front could read the list otherwise than we.
            if (has_length_) return refuse(ec, 400, "The request has two Content-Length headers.");
            has_length_ = true;
        }
        // Any other coding would be a request without a body to us, and one with a body to others.
        if (field == http::field::transfer_encoding && !boost::beast::iequals(value, "chunked"))
            return refuse(ec, 501, "This server takes no other transfer coding than chunked.");
        if (field == http::field::expect)
            expects_continue_ = boost::beast::iequals(value, "100-continue");
        request_->headers.emplace_back(view(name), view(value));
    }

    void on_header_impl(ErrorCode&) override { header_done_ = true; }
    void on_body_init_impl(boost::optional<std::uint64_t> const&, ErrorCode&) override {}

    std::size_t on_body_impl(Text body, ErrorCode&) override {
        chunk_ = view(body);
        return body.size();
    }

    void on_chunk_header_impl(std::uint64_t, Text, ErrorCode&) override {}

    std::size_t on_chunk_body_impl(std::uint64_t, Text body, ErrorCode&) override {
        chunk_ = view(body);
        return body.size();
    }

    void on_finish_impl(ErrorCode&) override {}

    void on_response_impl(int, Text, int, ErrorCode&) override {}

    void refuse(ErrorCode& ec, int status, std::string text) {
        error_ = {status, std::move(text)};
        ec = http::error::bad_value;
    }

    std::shared_ptr<Request> request_;
    bool has_host_ = false;
    bool has_length_ = false;
};

ParseError describe(const ErrorCode& ec) {
    if (ec == http::error::header_limit)
        return {431, "The headers of the request are larger than this server's limit."};
    if (ec == http::error::body_limit)
        return {413, "The body of the request is larger than this server's limit."};
    if (ec == http::error::bad_version) return {505, "This server speaks HTTP/1.0 and HTTP/1.1."};
    return {400, "The request is not valid HTTP: " + ec.message() + "."};
}

}  // namespace

struct RequestParser::State {
    explicit State(std::size_t bytes_max) : header_bytes_max(bytes_max) {}

    std::size_t header_bytes_max;
    std::shared_ptr<Request> request;
    std::optional<Parser> parser;
    bool header_reported = false;
    ParseError error;
};

RequestParser::RequestParser(std::size_t header_bytes_max)
    : state_(std::make_unique<State>(header_bytes_max)) {
    reset();
}

RequestParser::~RequestParser() = default;

void RequestParser::reset() {
    State& s = *state_;
    s.request = std::make_shared<Request>();
    s.request->headers.reserve(8);
    s.parser.emplace(s.request);
    s.parser->header_limit(static_cast<std::uint32_t>(s.header_bytes_max));
    s.parser->body_limit(boost::none);
    s.header_reported = false;
    s.error = {};
}

RequestParser::Progress RequestParser::feed(std::string_view input, std::size_t& consumed) {
    State& s = *state_;
    consumed = 0;
    for (;;) {
        if (s.parser->header_done_ && !s.header_reported) {
            s.header_reported = true;
            return Progress::kHeader;
        }
        if (s.parser->is_done()) return Progress::kDone;
        if (consumed == input.size()) return Progress::kNeedMore;
        s.parser->chunk_ = {};
        ErrorCode ec;
        const std::string_view rest = input.substr(consumed);
        consumed += s.parser->put(boost::asio::const_buffer(rest.data(), rest.size()), ec);
        if (ec == http::error::need_more) {
            // A chunk's header has no limit of its own in the parser.
            if (input.size() - consumed <= s.header_bytes_max) return Progress::kNeedMore;
            s.error = {431, "A chunk of the request has a header beyond this server's limit."};
            return Progress::kError;
        }
        if (ec) {
            s.error = s.parser->error_.status != 0 ? s.parser->error_ : describe(ec);
            return Progress::kError;
        }
        if (!s.parser->chunk_.empty()) return Progress::kChunk;
    }
}

void RequestParser::limit_body(std::uint64_t bytes_max) {
    state_->parser->body_limit(bytes_max);
}

const std::shared_ptr<Request>& RequestParser::request() const {
    return state_->request;
}

std::string_view RequestParser::chunk() const {
    return state_->parser->chunk_;
}

bool RequestParser::understands_chunks() const {
    return state_->parser->version_ >= 11;
}

bool RequestParser::keep_alive() const {
    return state_->parser->is_header_done() && state_->parser->keep_alive();
}

bool RequestParser::has_body() const {
    const Parser& parser = *state_->parser;
    return parser.is_header_done() && !parser.is_done();
}

bool RequestParser::expects_continue() const {
    return state_->parser->expects_continue_ && has_body();
}

bool RequestParser::started() const {
    return state_->parser->got_some();
}

std::optional<std::uint64_t> RequestParser::content_length() const {
    const Parser& parser = *state_->parser;
    if (!parser.is_header_done()) return std::nullopt;
    const auto length = parser.content_length();
    return length ? std::optional<std::uint64_t>(*length) : std::nullopt;
}

int RequestParser::error_status() const {
    return state_->error.status;
}

const std::string& RequestParser::error_text() const {
    return state_->error.text;
}

}  // namespace tune::tracker
