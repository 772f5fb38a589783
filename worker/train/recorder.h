#pragma once
// What a training run leaves behind while it goes: lines of metrics and checkpoints. Both are
// written by one background thread, so that neither a slow reader nor a slow disk holds up a step.

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tune::train {

/// Lines that wait for the reader of stdout. A trial prints a few a second; beyond this the
/// training thread waits, since metrics must not be lost.
inline constexpr std::size_t kLinesWaitingMax = 4096;

inline constexpr int kReaderWait_ms = 1'000;

struct NamedValue {
    std::string name;
    double value = 0.0;
};

/// `tune: {"a": 1.5, ..., "step": n}` with a line feed. Values that are not finite become the
/// strings "NaN", "Infinity", "-Infinity".
[[nodiscard]] std::string metric_line(std::span<const NamedValue> values, std::int64_t step);

/// `tune: {"artifact": "FILE"}` with a line feed: the file is complete, and its run may have it.
[[nodiscard]] std::string artifact_line(const std::filesystem::path& file);

/// Takes whole lines, from one thread; false when nobody will read any more.
using LineSink = std::function<bool(const std::string& lines)>;
/// Writes to a file descriptor, which outlives the sink.
[[nodiscard]] LineSink lines_to(int fd);

/// The directory of one run's checkpoints, held by one process at a time.
class CheckpointDirectory {
public:
    /// Makes the directory when missing, takes its lock, removes what a killed process left half
    /// written. Errors: kResourceConflict when another process trains there, kInternalError with
    /// the system's reason.
    [[nodiscard]] static Result<CheckpointDirectory> open(const std::filesystem::path& path);

    CheckpointDirectory(CheckpointDirectory&& other) noexcept;
    CheckpointDirectory& operator=(CheckpointDirectory&&) = delete;
    ~CheckpointDirectory();

    [[nodiscard]] std::filesystem::path last() const { return path_ / "last.safetensors"; }
    [[nodiscard]] std::filesystem::path best() const { return path_ / "best.safetensors"; }
    /// Of one of several best epochs that are kept.
    [[nodiscard]] std::filesystem::path best_of(std::int64_t epoch) const {
        return path_ / (kBestOfPrefix + std::to_string(epoch) + ".safetensors");
    }
    /// Removes those of other epochs than `kept`.
    void remove_best_except(const std::vector<std::int64_t>& kept) const;
    /// The one before the last: what is left when a disk damages that.
    [[nodiscard]] std::filesystem::path previous() const { return path_ / "previous.safetensors"; }
    [[nodiscard]] std::filesystem::path model() const { return path_ / "model.safetensors"; }

private:
    static constexpr const char* kBestOfPrefix = "best-epoch-";
    CheckpointDirectory(std::filesystem::path path, int lock_fd);

    std::filesystem::path path_;
    int lock_fd_;
};

/// What a file will hold: its bytes, or a function that makes them of what it holds itself. A
/// value.
class FileBytes {
public:
    FileBytes() = default;
    FileBytes(std::string bytes) : bytes_(std::move(bytes)) {}  // NOLINT: implicit by design
    FileBytes(const char* bytes) : bytes_(bytes) {}             // NOLINT: implicit by design
    explicit FileBytes(std::function<std::string()> make) : make_(std::move(make)) {}

    [[nodiscard]] std::string bytes() const { return make_ ? make_() : bytes_; }

private:
    std::string bytes_;
    std::function<std::string()> make_;
};

/// Writes lines and checkpoints in the order in which they were given. Lines given before a
/// checkpoint are written before it, and where a pipe takes them they have been read, so a
/// checkpoint never claims metrics that nobody saw: not even if the reader and this process are
/// killed together. A reader that reads nothing for kReaderWait_ms is not waited for.
/// line() and checkpoint() from one thread; the rest from any.
class Recorder {
public:
    /// The weights of an epoch that is among the best.
    struct BestOf {
        std::int64_t epoch = 0;
        FileBytes bytes;
    };
    /// Files, whose bytes the background thread makes; those of the best are written before `last`,
    /// whose state refers to them.
    struct Checkpoint {
        FileBytes last;
        std::optional<FileBytes> best;  ///< where one best epoch is kept
        // Where several are:
        std::vector<BestOf> added = {};
        std::int64_t best_epoch = 0;          ///< best.safetensors becomes a name of its; 0: stays
        std::vector<std::int64_t> kept = {};  ///< after `last` is written the others are removed
    };

    /// `directory` may be null (no checkpoints); it and `metrics_fd` outlive the recorder.
    Recorder(int metrics_fd, const CheckpointDirectory* directory);
    /// `lines` is called by the background thread. Its lines go to stdout in the end, if to a pipe.
    Recorder(LineSink lines, const CheckpointDirectory* directory);
    /// Writes what is left.
    ~Recorder();
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    /// Waits only when kLinesWaitingMax lines are waiting.
    void line(std::string text);

    /// Never waits. A checkpoint that was not begun when the next one comes is replaced by it,
    /// except that its best ones are written, too, unless the next has others in their place.
    void checkpoint(Checkpoint checkpoint);

    /// Returns when all that was given has been written.
    void drain();

    /// True once the reader of the metrics is gone; lines are dropped from then on.
    [[nodiscard]] bool reader_gone() const { return reader_gone_.load(); }

    /// The first error in writing a checkpoint since the last call, once.
    [[nodiscard]] std::optional<Error> take_checkpoint_error();

private:
    Recorder(LineSink lines, int outlet, const CheckpointDirectory* directory);
    void work();
    void write_lines(const std::deque<std::string>& lines);
    void write_checkpoint(const Checkpoint& checkpoint);
    [[nodiscard]] Result<void> write_files(const Checkpoint& checkpoint) const;
    [[nodiscard]] Result<void> write_best(const Checkpoint& checkpoint) const;
    void keep_previous() const;

    const LineSink sink_;
    const int outlet_;  // of the lines
    const CheckpointDirectory* const directory_;
    std::atomic<bool> reader_gone_ = false;

    std::mutex mutex_;
    std::condition_variable given_;  // there is work, or stop
    std::condition_variable done_;   // work was taken or finished
    std::deque<std::string> lines_;
    std::optional<Checkpoint> checkpoint_;
    std::optional<Error> checkpoint_error_;
    bool busy_ = false;
    bool stop_ = false;
    std::thread thread_;  // last: starts when all else is there
};

}  // namespace tune::train
