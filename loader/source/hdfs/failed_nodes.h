#pragma once
// Data nodes that lately did not answer: a name node that is told of them sends readers elsewhere.

#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace tune::loader {

/// What a name node may know the host of `url` by: its name and its addresses, which are looked up.
[[nodiscard]] std::vector<std::string> host_names(std::string_view url);

/// Thread-safe.
class FailedNodes {
public:
    /// The data node of these names failed now. It counts for a minute: the name node itself may
    /// take ten to notice.
    void add(const std::vector<std::string>& names);

    /// "&excludedatanodes=NAME,NAME"; empty when there are none.
    [[nodiscard]] std::string parameter();

    /// When no other data node has the block.
    void clear();

private:
    std::mutex mutex_;
    /// Until when a name counts. Guarded by mutex_.
    std::map<std::string, std::chrono::steady_clock::time_point> until_;
};

}  // namespace tune::loader
