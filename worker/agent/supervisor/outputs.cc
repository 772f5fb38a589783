#include "worker/agent/supervisor/outputs.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "worker/agent/supervisor/ranks.h"
#include "worker/agent/supervisor/supervisor.h"

namespace tune::worker {
namespace {

constexpr std::size_t kPumpBytes = 64 << 10;

/// Gives the middle of a large file back to the file system. False: it cannot do that.
bool keep_bounded(Output& output) {
    const std::int64_t begin = output.punched > 0 ? output.punched : kLogHeadBytes;
    const std::int64_t end = output.bytes - kLogTailBytes;
    if (end - begin < kLogPunchBytes) return true;
    if (fallocate(output.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin, end - begin) != 0)
        return false;
    output.punched = end;
    return true;
}

/// Gives a file that has become too long up where it cannot be kept bounded.
void bound(Output& output) {
    if (keep_bounded(output)) return;
    close(output.file);
    output.file = open("/dev/full", O_WRONLY | O_CLOEXEC);
}

/// Output that cannot be stored is dropped and counted: a full disk must not block the trial.
void store(Output& output, const char* data, std::size_t count) {
    while (count > 0) {
        const ssize_t written = output.file < 0 ? -1 : write(output.file, data, count);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) {
            output.lost += static_cast<std::int64_t>(count);
            return;
        }
        output.bytes += written;
        data += written;
        count -= static_cast<std::size_t>(written);
    }
    bound(output);
}

/// Bytes that went from the pipe to the file; 0: the trial has closed it; -1: none, errno says why.
///
/// Within the kernel: what is not in the file is still in the pipe, whenever this process is
/// killed. So a trial that finds its pipe empty knows that what it said is kept (recorder.h of the
/// trainer waits for that before it writes a checkpoint).
ssize_t move_some(Output& output, std::size_t count) {
    const ssize_t moved = output.file < 0 ? -1
                                          : splice(output.pipe, nullptr, output.file, nullptr,
                                                   count, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (moved > 0) {
        output.bytes += moved;
        bound(output);
    }
    if (moved >= 0 || (output.file >= 0 && (errno == EINTR || errno == EAGAIN))) return moved;
    // The disk is full, or its file system cannot do it.
    static char buffer[kPumpBytes];
    const ssize_t read_count = read(output.pipe, buffer, count);
    if (read_count > 0) store(output, buffer, static_cast<std::size_t>(read_count));
    return read_count;
}

/// Whether there is something to read, so that a file is made with the first byte only.
bool has_output(const Output& output) {
    int bytes = 0;
    return ioctl(output.pipe, FIONREAD, &bytes) == 0 && bytes > 0;
}

}  // namespace

bool move_output(int directory, Output& output, bool to_end) {
    bool has_moved = false;
    while (output.pipe >= 0) {
        if (output.file < 0 && has_output(output))
            output.file = open_output(directory, output.file_name);
        const ssize_t count = move_some(output, kPumpBytes);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0 && errno == EAGAIN) break;
        if (count <= 0) {
            close(output.pipe);
            output.pipe = -1;
            break;
        }
        has_moved = true;
        if (!to_end) break;
    }
    return has_moved;
}

bool make_room(Output* outputs, int count) {
    Output* longest = nullptr;
    for (Output* output = outputs; output != outputs + count; ++output)
        if (output->file >= 0 && (longest == nullptr || output->bytes > longest->bytes))
            longest = output;
    if (longest == nullptr || longest->bytes == 0) return false;
    const auto room = static_cast<std::int64_t>(kPumpBytes);
    const std::int64_t left = longest->bytes > room ? longest->bytes - room : 0;
    if (ftruncate(longest->file, left) != 0) return false;
    longest->lost += longest->bytes - left;
    longest->bytes = left;
    return true;
}

}  // namespace tune::worker
