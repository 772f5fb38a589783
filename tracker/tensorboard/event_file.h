#pragma once
// Files of TensorBoard's events: records with checksums (TFRecord), one file a writer.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/system/unique_fd.h"

namespace tune::tensorboard {

/// Longer records (images, graphs) are left out.
inline constexpr std::uint64_t kRecordBytesMax = std::uint64_t{64} << 20;

/// CRC-32C (Castagnoli), rotated and offset as TFRecord wants it. About 1 GB/s.
[[nodiscard]] std::uint32_t masked_crc32c(std::string_view bytes);
/// Length, its checksum, the record, its checksum.
[[nodiscard]] std::string framed(std::string_view record);

/// Whether TensorBoard takes a file of this name for one of events.
[[nodiscard]] bool is_event_file_name(std::string_view name);

/// Reads one file from its beginning. One thread; memory for one record.
class RecordReader {
public:
    enum class Next {
        kRecord,
        kTooLong,    ///< one above kRecordBytesMax, passed over
        kEnd,        ///< after a whole record
        kTruncated,  ///< within one: its writer was killed, or is about to go on
        kDamaged,    ///< a checksum is wrong; nothing after it can be found
    };
    explicit RecordReader(UniqueFd file) : file_(std::move(file)) {}

    /// The next record into `record`. The last three are final. Errors: kInternalError with the
    /// system's reason.
    [[nodiscard]] Result<Next> next(std::string& record);
    /// Where the record that was last asked for begins.
    [[nodiscard]] std::uint64_t offset() const { return begin_; }

private:
    Result<std::size_t> read(char* out, std::size_t size, std::uint64_t offset) const;

    UniqueFd file_;
    std::uint64_t begin_ = 0;
    std::uint64_t end_ = 0;  ///< of the last record
};

/// A new file in a folder. Each call's records are with the system when it returns.
class EventFile {
public:
    /// Makes the folder where it is missing, and the file with its first record. Errors:
    /// kInternalError with path and reason.
    [[nodiscard]] static Result<EventFile> create(const std::filesystem::path& folder,
                                                  double wall_time_s);
    /// Of whole events, not framed yet. Errors: kInternalError.
    [[nodiscard]] Result<void> write(std::string_view event);
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
    EventFile(std::filesystem::path path, UniqueFd file)
        : path_(std::move(path)), file_(std::move(file)) {}

    std::filesystem::path path_;
    UniqueFd file_;
};

}  // namespace tune::tensorboard
