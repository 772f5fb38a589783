#pragma once
// One host behind ssh: a master connection that everything else goes through, scripts that run
// there, files that are put there, and a port of it that leads back to our server.

#include <string>
#include <vector>

#include "base/result.h"
#include "base/system/unique_fd.h"

namespace tune::launch {

struct SshOptions {
    std::string host = {};     ///< as ~/.ssh/config knows it
    std::string config = {};   ///< another file in its place; empty: ssh's own
    std::string control = {};  ///< path of the master's socket, private and short
};

/// Used by one thread at a time. Its connection ends with this object, and with this process
/// however that ends.
class SshHost {
public:
    explicit SshHost(SshOptions options) : options_(std::move(options)) {}

    [[nodiscard]] const std::string& name() const { return options_.host; }

    /// Connects if there is no connection; true: it is a new one, without forwarded ports. Errors:
    /// kTemporarilyUnavailable with ssh's own words.
    [[nodiscard]] Result<bool> connect();

    /// Runs a script of POSIX sh there, with `input` after it on its stdin if the script reads it
    /// (the script itself is an argument). Errors: kInvalidState with the end of its stderr.
    [[nodiscard]] Result<std::string> run(const std::string& script,
                                          const std::string& input = {}) const;

    /// A port on its loopback that leads to `target` ("127.0.0.1:5000"), seen from here. `wanted`:
    /// the one to take; 0: any. Errors: kResourceConflict where it is taken.
    [[nodiscard]] Result<int> forward(const std::string& target, int wanted) const;

    void disconnect();

private:
    [[nodiscard]] std::vector<std::string> ssh(const std::vector<std::string>& flags) const;

    SshOptions options_;
    UniqueFd life_;
};

}  // namespace tune::launch
