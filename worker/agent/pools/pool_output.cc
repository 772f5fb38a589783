#include "worker/agent/pools/pool_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace tune::worker {
namespace {

constexpr std::size_t kChunkBytes = 256u << 10;
/// A line may hold the text of a log.
constexpr std::size_t kPoolLineBytesMax = 1u << 20;

}  // namespace

PoolOutput::PoolOutput(const AttemptFiles& files, PoolOutputEvents events)
    : path_(files.path(kStdoutFile)),
      events_(std::move(events)),
      journal_(files.path(kProgressFile)) {}

std::set<std::string> PoolOutput::resume() {
    PoolJournal::Notes notes = journal_.read();
    read_before_ = std::move(notes.read);
    return std::move(notes.settled);
}

bool PoolOutput::read(std::int64_t now_ms) {
    if (!file_) file_.reset(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file_) return false;
    static thread_local std::vector<char> buffer(kChunkBytes);
    std::size_t most = buffer.size();
    const bool is_again = !read_before_.empty();
    if (is_again) {
        const ReadStretch& stretch = read_before_.front();
        most = std::min(most,
                        static_cast<std::size_t>(std::max<std::int64_t>(stretch.end - offset_, 1)));
        now_ms = stretch.timestamp_ms;
    }
    const ssize_t count = pread(file_.get(), buffer.data(), most, offset_);
    if (count <= 0) return false;
    offset_ += count;
    if (!is_again)
        journal_.note_read({offset_, now_ms});
    else if (offset_ >= read_before_.front().end)
        read_before_.pop_front();
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(count));
    if (bytes.find('\0') != std::string_view::npos) events_.lost();  // a hole in the file
    take(bytes, now_ms);
    return true;
}

void PoolOutput::take(std::string_view bytes, std::int64_t read_ms) {
    while (!bytes.empty()) {
        const std::size_t end = bytes.find('\n');
        if (end == std::string_view::npos) {
            partial_.append(bytes);
            if (partial_.size() > kPoolLineBytesMax) partial_.clear();
            return;
        }
        if (partial_.empty()) {
            events_.line(bytes.substr(0, end), read_ms);
        } else {
            const std::string line = std::exchange(partial_, {}).append(bytes.substr(0, end));
            events_.line(line, read_ms);
        }
        bytes.remove_prefix(end + 1);
    }
}

}  // namespace tune::worker
