#pragma once
// Typed reading of a map's fields with bounds and places. For readers of studies.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tuner/space/node.h"

namespace tune::tuner {

/// Each getter leaves `out` alone when the key is absent.
class Fields {
public:
    /// Refuses a node that is not a map, and keys that are not `known`. `path`: empty for the
    /// outermost map of a file. `depth`: of maps of the same kind within each other, the outermost
    /// being 1.
    [[nodiscard]] static Result<Fields> open(const Node& node, std::string path,
                                             const std::vector<std::string>& known, int depth = 1);

    [[nodiscard]] Result<void> integer(std::string_view key, std::int64_t& out, std::int64_t low,
                                       std::int64_t high) const;
    [[nodiscard]] Result<void> integer(std::string_view key, int& out, int low, int high) const;
    [[nodiscard]] Result<void> number(std::string_view key, double& out, double low,
                                      double high) const;
    [[nodiscard]] Result<void> text(std::string_view key, std::string& out,
                                    std::size_t chars_max) const;
    [[nodiscard]] Result<void> duration(std::string_view key, std::int64_t& out_ms) const;

    [[nodiscard]] const Node* find(std::string_view key) const { return node_->find(key); }
    [[nodiscard]] std::string path_of(std::string_view key) const {
        return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
    }
    [[nodiscard]] const Node& node() const { return *node_; }
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] int depth() const { return depth_; }

private:
    Fields(const Node& node, std::string path, int depth)
        : node_(&node), path_(std::move(path)), depth_(depth) {}

    const Node* node_;
    std::string path_;
    int depth_;
};

/// One value as a duration: a number of seconds or "1h30m".
[[nodiscard]] Result<std::int64_t> duration_of(const Node& node, std::string_view path);

/// Refuses a value that is not a text of at most `chars_max` bytes without control characters but
/// tab.
[[nodiscard]] Result<void> check_text(const Node& node, std::string_view path,
                                      std::size_t chars_max);

}  // namespace tune::tuner
