// A length is checked against the file before memory is taken for it, so that a file cannot ask for
// more than it has. Reading goes by place: a file that grows meanwhile does no harm.

#include "tracker/tensorboard/event_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/system/file.h"
#include "tracker/tensorboard/event.h"

namespace tune::tensorboard {
namespace {

constexpr std::uint64_t kHeaderBytes = 12;  // length and its checksum
constexpr std::uint64_t kFooterBytes = 4;
constexpr std::uint32_t kPolynomial = 0x82f63b78;  // reflected

/// Tables for eight bytes at once ("slicing by 8").
constexpr auto kTables = [] {
    std::array<std::array<std::uint32_t, 256>, 8> tables{};
    for (std::uint32_t i = 0; i < 256; ++i) {
        std::uint32_t crc = i;
        for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
        tables[0][i] = crc;
    }
    for (std::size_t k = 1; k < 8; ++k)
        for (std::size_t i = 0; i < 256; ++i)
            tables[k][i] = (tables[k - 1][i] >> 8) ^ tables[0][tables[k - 1][i] & 255];
    return tables;
}();

std::uint32_t crc32c(std::string_view bytes) {
    std::uint32_t crc = 0xffffffff;
    while (bytes.size() >= 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data(), 8);
        word ^= crc;
        crc = 0;
        for (std::size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][(word >> (8 * k)) & 255];
        bytes.remove_prefix(8);
    }
    for (const char c : bytes)
        crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<unsigned char>(c)) & 255];
    return ~crc;
}

template <class T>
std::string raw(T value) {
    std::string text(sizeof value, '\0');
    std::memcpy(text.data(), &value, sizeof value);
    return text;
}

template <class T>
T number_at(const char* place) {
    T value;
    std::memcpy(&value, place, sizeof value);
    return value;
}

Error failed(const std::filesystem::path& path, const char* what) {
    return {Code::kInternalError,
            std::string("cannot ") + what + " '" + path.string() + "': " + std::strerror(errno)};
}

}  // namespace

std::uint32_t masked_crc32c(std::string_view bytes) {
    return std::rotr(crc32c(bytes), 15) + 0xa282ead8;
}

std::string framed(std::string_view record) {
    const std::string length = raw(static_cast<std::uint64_t>(record.size()));
    return length + raw(masked_crc32c(length)) + std::string(record) + raw(masked_crc32c(record));
}

bool is_event_file_name(std::string_view name) {
    return name.find("tfevents") != std::string_view::npos;
}

Result<std::size_t> RecordReader::read(char* out, std::size_t size, std::uint64_t offset) const {
    std::size_t done = 0;
    while (done < size) {
        const ssize_t count =
            pread(file_.get(), out + done, size - done, static_cast<off_t>(offset + done));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0)
            return Error{Code::kInternalError,
                         std::string("cannot read the file: ") + std::strerror(errno)};
        if (count == 0) break;
        done += static_cast<std::size_t>(count);
    }
    return done;
}

Result<RecordReader::Next> RecordReader::next(std::string& record) {
    begin_ = end_;
    std::array<char, kHeaderBytes> header{};
    TUNE_TRY(read_bytes, read(header.data(), header.size(), begin_));
    if (read_bytes == 0) return Next::kEnd;
    if (read_bytes < header.size()) return Next::kTruncated;
    const auto length = number_at<std::uint64_t>(header.data());
    if (number_at<std::uint32_t>(header.data() + 8) != masked_crc32c({header.data(), 8}))
        return Next::kDamaged;
    struct stat info {};
    if (fstat(file_.get(), &info) != 0) return Error{Code::kInternalError, std::strerror(errno)};
    // Before memory is taken: a length may be anything.
    const std::uint64_t left = static_cast<std::uint64_t>(info.st_size) - begin_ - kHeaderBytes;
    if (left < kFooterBytes || length > left - kFooterBytes) return Next::kTruncated;
    end_ = begin_ + kHeaderBytes + length + kFooterBytes;
    if (length > kRecordBytesMax) return Next::kTooLong;
    const auto size = static_cast<std::size_t>(length);
    record.resize(size + kFooterBytes);
    TUNE_TRY(body, read(record.data(), record.size(), begin_ + kHeaderBytes));
    if (body < record.size()) return Next::kTruncated;
    const auto crc = number_at<std::uint32_t>(record.data() + size);
    record.resize(size);
    return crc == masked_crc32c(record) ? Next::kRecord : Next::kDamaged;
}

Result<EventFile> EventFile::create(const std::filesystem::path& folder, double wall_time_s) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
        return Error{Code::kInternalError,
                     "cannot make the folder '" + folder.string() + "': " + error.message()};
    std::array<char, 256> host{};
    if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
    // As TensorBoard's own writer names them: files sort by time.
    const std::string stem =
        "events.out.tfevents." + std::to_string(static_cast<std::int64_t>(wall_time_s)) + "." +
        (host[0] == '\0' ? "localhost" : host.data()) + "." + std::to_string(getpid()) + ".";
    for (int i = 0;; ++i) {
        const std::filesystem::path path = folder / (stem + std::to_string(i) + ".tune");
        UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644));
        if (!fd && errno == EEXIST) continue;
        if (!fd) return failed(path, "make the file");
        EventFile file(path, std::move(fd));
        TUNE_TRY_VOID(file.write(version_event(wall_time_s)));
        return file;
    }
}

Result<void> EventFile::write(std::string_view event) {
    if (!write_all(file_.get(), framed(event))) return failed(path_, "write to");
    return {};
}

}  // namespace tune::tensorboard
