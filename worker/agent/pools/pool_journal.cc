#include "worker/agent/pools/pool_journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <sstream>

#include "base/system/file.h"

namespace tune::worker {
namespace {

constexpr std::size_t kJournalBytesMax = 256u << 20;

}  // namespace

void PoolJournal::note_read(const ReadStretch& stretch) {
    add("read " + std::to_string(stretch.end) + " " + std::to_string(stretch.timestamp_ms));
}

void PoolJournal::note_settled(std::string_view attempt) {
    add("settled " + std::string(attempt));
}

void PoolJournal::add(std::string line) {
    if (!file_) file_.reset(open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    line += '\n';
    if (!file_ || write(file_.get(), line.data(), line.size()) < 0) return;
}

PoolJournal::Notes PoolJournal::read() const {
    Notes notes;
    std::istringstream lines(read_file(path_, kJournalBytesMax).value_or(""));
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string what;
        std::string attempt;
        ReadStretch stretch;
        words >> what;
        if (what == "read" && words >> stretch.end >> stretch.timestamp_ms)
            notes.read.push_back(stretch);
        else if (what == "settled" && words >> attempt)
            notes.settled.insert(std::move(attempt));
    }
    return notes;
}

}  // namespace tune::worker
