#pragma once

#include <cstdint>
#include <string>

#include "tracker/transfer/importer.h"

namespace tune::cli {

/// How far an import or export is, on stderr: one line that is redrawn on a terminal, else a line
/// now and then.
class TransferBar {
public:
    /// `moving`: the word for what is done, e.g. "importing".
    TransferBar(std::string moving, bool live, bool quiet);
    ~TransferBar() { clear(); }
    TransferBar(const TransferBar&) = delete;
    TransferBar& operator=(const TransferBar&) = delete;

    void show(const tracker::TransferProgress& progress);
    /// Removes the line from the terminal.
    void clear();

private:
    [[nodiscard]] std::string text_of(const tracker::TransferProgress& progress) const;

    std::string moving_;
    bool live_;
    bool quiet_;
    bool shown_ = false;
    std::int64_t started_ms_;
    std::int64_t last_ms_ = 0;
};

/// "1.2 GB".
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);

}  // namespace tune::cli
