// Hadoop's file of credentials: "HDTS", a version, a count, then an alias and a token each; secrets
// of other kinds follow, which nobody here wants. A token is an identifier, a password, its kind
// and the service it opens, each with its length in front as one of Hadoop's numbers of variable
// length. WebHDFS takes these very bytes in base64 (Hadoop's Token.encodeToUrlString).

#include "loader/source/hdfs/hadoop_token.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/text/base64.h"

namespace tune::loader {
namespace {

/// Takes numbers and texts off the front of the file.
class CredentialsFile {
public:
    explicit CredentialsFile(std::string_view bytes) : rest_(bytes) {}

    /// Nothing: the file ends before it.
    [[nodiscard]] std::optional<std::string_view> bytes(std::size_t count) {
        if (count > rest_.size()) return {};
        const std::string_view taken = rest_.substr(0, count);
        rest_.remove_prefix(count);
        return taken;
    }

    /// One byte up to 127, or one that says how many bytes follow, most significant first. Nothing
    /// also for negative ones.
    [[nodiscard]] std::optional<std::size_t> number() {
        const std::optional<std::string_view> first = bytes(1);
        if (!first) return {};
        const int head = static_cast<signed char>(first->front());
        if (head >= 0) return static_cast<std::size_t>(head);
        if (head > -113 || head < -120) return {};
        const std::optional<std::string_view> more = bytes(static_cast<std::size_t>(-112 - head));
        if (!more) return {};
        std::uint64_t value = 0;
        for (const char byte : *more) value = value << 8 | static_cast<unsigned char>(byte);
        return value;
    }

    [[nodiscard]] std::optional<std::string_view> text() {
        const std::optional<std::size_t> count = number();
        return count ? bytes(*count) : std::nullopt;
    }

    [[nodiscard]] std::string_view rest() const { return rest_; }

private:
    std::string_view rest_;
};

struct Token {
    std::string_view bytes;
    std::string_view kind;
    std::string_view service;
};

std::optional<Token> next_token(CredentialsFile& file) {
    const std::string_view begin = file.rest();
    const auto identifier = file.text();
    const auto password = identifier ? file.text() : std::nullopt;
    const auto kind = password ? file.text() : std::nullopt;
    const auto service = kind ? file.text() : std::nullopt;
    if (!service) return {};
    return Token{begin.substr(0, begin.size() - file.rest().size()), *kind, *service};
}

bool is_for_hdfs(const Token& token) {
    return token.kind == "HDFS_DELEGATION_TOKEN" || token.kind == "WEBHDFS delegation" ||
           token.kind == "SWEBHDFS delegation";
}

/// A name service is called "ha-hdfs:NAME" there, or "ha-webhdfs:NAME".
bool is_of(const Token& token, const std::vector<std::string>& services) {
    std::string_view service = token.service;
    if (service.starts_with("ha-")) service.remove_prefix(service.find(':') + 1);
    return std::ranges::find(services, service) != services.end();
}

}  // namespace

Result<std::string> hadoop_token(std::string_view file, const std::vector<std::string>& services) {
    constexpr std::string_view kMagic = "HDTS";
    const Error damaged = invalid_parameter("it is no file of Hadoop's tokens, or ends too early");
    if (!file.starts_with(kMagic) || file.size() < kMagic.size() + 2) return damaged;
    if (file[kMagic.size()] != 0)
        return invalid_parameter(
            "its tokens are written as protocol buffers, which are not read; have them written "
            "with: hadoop dtutil get URL -format java FILE");
    CredentialsFile credentials(file.substr(kMagic.size() + 1));
    const std::optional<std::size_t> count = credentials.number();
    if (!count) return damaged;
    std::vector<Token> tokens;
    std::string known;
    for (std::size_t i = 0; i < *count; ++i) {
        const bool has_alias = credentials.text().has_value();
        const std::optional<Token> token = has_alias ? next_token(credentials) : std::nullopt;
        if (!token) return damaged;
        if (is_for_hdfs(*token) && is_of(*token, services)) return base64_url(token->bytes);
        if (!is_for_hdfs(*token)) continue;
        tokens.push_back(*token);
        known += (known.empty() ? "" : ", ") + std::string(token->service);
    }
    if (tokens.size() == 1) return base64_url(tokens.front().bytes);
    return Error{Code::kUnauthenticated, tokens.empty() ? "it holds no token for HDFS"
                                                        : "its tokens for HDFS are for " + known};
}

}  // namespace tune::loader
