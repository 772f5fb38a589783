#pragma once
// The web page inside the program: the files that build.mjs wrote, as bytes of the executable.

#include <span>
#include <string_view>

namespace tune::web {

/// One file of the page. All views point into the executable and live as long as the program.
struct Asset {
    /// As in a URL, with the leading slash: "/index.html", "/app.3f9c2a71.js".
    std::string_view path;
    /// As it is.
    std::string_view bytes;
    /// gzip -9 of `bytes`; empty if that is no smaller (or was not made). Send it, with
    /// `Content-Encoding: gzip`, to whoever accepts gzip.
    std::string_view gzip;
    /// For Content-Type, e.g. "text/javascript; charset=utf-8".
    std::string_view content_type;
    /// Quoted, for ETag; equal bytes have equal tags.
    std::string_view etag;
    /// The path holds a hash of the content: `Cache-Control: public, max-age=31536000, immutable`.
    /// The others get `no-cache`: ask with If-None-Match each time.
    bool immutable = false;
};

/// All files; "/index.html" is always there. Built without Node.js this is one page that says so.
[[nodiscard]] std::span<const Asset> assets();

/// The file for a URL path: an exact match, or "/index.html" for "/" and for every path whose last
/// segment has no dot (the page's own addresses, as "/e/3"); nullptr if there is none. O(files).
[[nodiscard]] const Asset* find_asset(std::string_view url_path);

}  // namespace tune::web
