#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

namespace tune::tracker {

/// Where artifacts were, and where they are now. About 250 bytes an entry.
class UriMap {
public:
    void add(const std::string& from, const std::string& to) {
        if (!from.empty() && from != to) uris_.emplace(from, to);
    }

    /// `uri`, or the new place of the longest folder of it that was moved with the rest appended.
    [[nodiscard]] std::string translate(std::string_view uri) const {
        std::string_view folder = uri;
        for (;;) {
            const auto found = uris_.find(std::string(folder));
            if (found != uris_.end()) return found->second + std::string(uri.substr(folder.size()));
            const std::size_t slash = folder.rfind('/');
            if (slash == std::string_view::npos) return std::string(uri);
            folder = folder.substr(0, slash);
        }
    }

private:
    std::unordered_map<std::string, std::string> uris_;
};

}  // namespace tune::tracker
