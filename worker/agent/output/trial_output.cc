// Reads the two log files from a remembered offset, cuts the new bytes into lines and keeps an
// unfinished last line for the next call. A segment ends at whole lines and records offset and step
// counters, so that an agent that takes over reads the same bytes into the same metrics, with the
// same timestamps; the server keeps one of equal points.

#include "worker/agent/output/trial_output.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "worker/agent/supervisor/supervisor.h"

namespace tune::worker {

TrialOutput::TrialOutput(std::filesystem::path directory, MetricLines lines, OutputPosition from)
    : lines_(std::move(lines)) {
    lines_.set_next_steps(std::move(from.next_steps));
    streams_[0].path = directory / kStdoutFile;
    streams_[1].path = directory / kStderrFile;
    for (std::size_t i = 0; i < streams_.size(); ++i) streams_[i].offset = from.offset[i];
}

bool TrialOutput::open_file(Stream& stream) {
    if (!stream.file)
        stream.file.reset(open(stream.path.c_str(), O_RDONLY | O_CLOEXEC));  // none: no output yet
    return static_cast<bool>(stream.file);
}

void TrialOutput::end_line(Stream& stream, std::int64_t timestamp_ms, LineFindings& findings) {
    if (!stream.skipping) {
        lines_.read(stream.partial, timestamp_ms, findings);
        if (rules_) rules_->read(stream.partial);
    }
    stream.offset += static_cast<std::int64_t>(stream.partial.size());
    stream.partial.clear();
    stream.skipping = false;
}

void TrialOutput::take(Stream& stream, std::string_view bytes, std::int64_t timestamp_ms,
                       LineFindings& findings) {
    while (!bytes.empty()) {
        const std::size_t newline = bytes.find('\n');
        const std::size_t count = newline == std::string_view::npos ? bytes.size() : newline + 1;
        if (stream.skipping || stream.partial.size() + count > kLineBytesMax) {
            stream.skipping = true;
            stream.offset += static_cast<std::int64_t>(stream.partial.size() + count);
            stream.partial.clear();
        } else {
            stream.partial.append(bytes.substr(0, count));
        }
        if (newline != std::string_view::npos) end_line(stream, timestamp_ms, findings);
        bytes.remove_prefix(count);
    }
}

bool TrialOutput::read_chunk(Stream& stream, std::int64_t until, std::int64_t timestamp_ms,
                             LineFindings& findings) {
    if (!open_file(stream)) return false;
    buffer_.resize(kChunkBytes);
    const std::int64_t at = stream.offset + static_cast<std::int64_t>(stream.partial.size());
    const auto wanted = static_cast<std::size_t>(
        std::clamp<std::int64_t>(until - at, 0, static_cast<std::int64_t>(buffer_.size())));
    if (wanted == 0) return false;
    ssize_t count = 0;
    do {
        count = pread(stream.file.get(), buffer_.data(), wanted, at);
    } while (count < 0 && errno == EINTR);
    if (count <= 0) return false;
    take(stream, {buffer_.data(), static_cast<std::size_t>(count)}, timestamp_ms, findings);
    return true;
}

void TrialOutput::close_segment(std::int64_t timestamp_ms, Segment& segment) const {
    segment.timestamp_ms = timestamp_ms;
    segment.end.offset = {streams_[0].offset, streams_[1].offset};
    segment.end.next_steps = lines_.next_steps();
}

bool TrialOutput::read(std::int64_t timestamp_ms, Segment& segment) {
    constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();
    bool any = false;
    for (Stream& stream : streams_)
        any = read_chunk(stream, kAll, timestamp_ms, segment.findings) || any;
    close_segment(timestamp_ms, segment);
    return any;
}

void TrialOutput::read_unfinished_lines(std::int64_t timestamp_ms, Segment& segment) {
    for (Stream& stream : streams_)
        if (!stream.partial.empty()) end_line(stream, timestamp_ms, segment.findings);
    close_segment(timestamp_ms, segment);
}

Segment TrialOutput::read_again(const std::array<std::int64_t, 2>& end, std::int64_t timestamp_ms) {
    Segment segment;
    for (std::size_t i = 0; i < streams_.size(); ++i) {
        Stream& stream = streams_[i];
        while (read_chunk(stream, end[i], timestamp_ms, segment.findings)) {
        }
        if (!stream.partial.empty()) end_line(stream, timestamp_ms, segment.findings);
    }
    close_segment(timestamp_ms, segment);
    return segment;
}

std::int64_t TrialOutput::bytes() const {
    std::int64_t total = 0;
    for (const Stream& stream : streams_)
        total += stream.offset + static_cast<std::int64_t>(stream.partial.size());
    return total;
}

std::string TrialOutput::tail(int stream, std::size_t bytes) const {
    const UniqueFd file(
        open(streams_[static_cast<std::size_t>(stream)].path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info {};
    if (!file || fstat(file.get(), &info) != 0) return {};
    const std::int64_t from =
        std::max<std::int64_t>(0, info.st_size - static_cast<std::int64_t>(bytes));
    std::string text(bytes, '\0');
    const ssize_t count = pread(file.get(), text.data(), bytes, from);
    text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return text;
}

std::string last_line(std::string_view text, std::size_t bytes_max) {
    while (!text.empty()) {
        while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ')
            text.remove_suffix(1);
        const std::size_t at = text.find_last_of("\r\n");
        std::string_view line = at == std::string_view::npos ? text : text.substr(at + 1);
        std::string clean;
        for (const char c : line.substr(0, bytes_max))
            if (static_cast<unsigned char>(c) >= ' ' && c != 0x7f) clean += c;
        if (!clean.empty()) return clean;
        text.remove_suffix(line.size());
    }
    return {};
}

}  // namespace tune::worker
