#pragma once
// Percent-encoding of URLs (RFC 3986, section 2.1).

#include <string>
#include <string_view>

namespace tune {

/// `text` for a URL's path: everything but letters, digits and "-._~/" as %XX. Without
/// `keep_slashes`, slashes too, as a segment or a query value needs it.
[[nodiscard]] std::string percent_encode(std::string_view text, bool keep_slashes = true);

/// Decodes %XX once; a '%' that no two hex digits follow stays. `plus_is_space`, as in query
/// strings and forms.
[[nodiscard]] std::string percent_decode(std::string_view text, bool plus_is_space = false);

/// Decodes until nothing changes, in one pass: what a decoded character completes is decoded at
/// once. Cost: O(text).
[[nodiscard]] std::string percent_decode_all(std::string_view text, bool plus_is_space = false);

}  // namespace tune
