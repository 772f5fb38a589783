#pragma once
// URIs taken apart as Python's urllib.parse does it: MLflow's rules for URIs are written in its
// terms.

#include <string>
#include <string_view>
#include <vector>

namespace tune {

/// Query and fragment are left out.
struct UriParts {
    std::string scheme;     // in lower case; empty: a path
    std::string authority;  // in lower case
    std::string path;       // still encoded
};
[[nodiscard]] UriParts split_uri(std::string_view uri);

/// A letter, then letters, digits, '+', '-' and '.' (RFC 3986, section 3.1).
[[nodiscard]] bool is_uri_scheme(std::string_view text);

/// "user@host:port" taken apart, as views of the text. Neither host nor port is validated.
struct Authority {
    enum class Flaw {
        kNone,
        kUnclosedBracket,   // '[' without ']'; host and port are empty
        kTextAfterBracket,  // other text than ":port" behind "[host]"
        kColonInHost,       // "a:b:80": an IPv6 address without its brackets, or nonsense
    };
    std::string_view user;  // before the last '@'
    std::string_view host;  // without brackets
    std::string_view port;  // behind the last colon
    bool has_user = false;
    bool has_port = false;
    bool is_bracketed = false;
    Flaw flaw = Flaw::kNone;
};
[[nodiscard]] Authority split_authority(std::string_view authority);

/// The parts between slashes that are not empty.
[[nodiscard]] std::vector<std::string> path_parts(std::string_view path);

/// path_parts without "." and with ".." undone, as far as there is something to undo.
[[nodiscard]] std::vector<std::string> resolved_parts(std::string_view path);

/// `inner` begins with all of `outer`.
[[nodiscard]] bool is_in_folder(const std::vector<std::string>& inner,
                                const std::vector<std::string>& outer);

}  // namespace tune
