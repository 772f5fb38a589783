#pragma once
// A `tune server` of our own in a folder of its own, for `tune bench`.

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"

namespace tune::cli {

class BenchServer {
public:
    /// Starts this program's server below `dir` and waits until it says where it listens. Call it
    /// before there are threads. Errors: kPermissionDenied if no folder can be made in `dir`;
    /// kInternalError with the server's last words when it does not start.
    [[nodiscard]] static Result<std::unique_ptr<BenchServer>> start(
        const std::filesystem::path& dir);
    /// Ends the server and removes the folder.
    ~BenchServer();
    BenchServer(const BenchServer&) = delete;
    BenchServer& operator=(const BenchServer&) = delete;

    [[nodiscard]] const std::string& url() const { return url_; }
    /// Resident memory; 0 once it has ended.
    [[nodiscard]] std::int64_t memory_bytes() const;
    /// The last line of its log; empty if it said nothing.
    [[nodiscard]] std::string last_words() const;

private:
    explicit BenchServer(std::filesystem::path folder) : folder_(std::move(folder)) {}
    [[nodiscard]] Result<void> spawn();

    std::filesystem::path folder_;
    std::string url_;
    pid_t pid_ = -1;
};

}  // namespace tune::cli
