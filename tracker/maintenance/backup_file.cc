// A plain tar, so that it can be looked into and unpacked without us. The last entry is the digest
// of all bytes before it; a file without it was cut off. Names and sizes are untrusted input when
// read: headers carry a checksum, lengths are bounded before memory is taken.

#include "tracker/maintenance/backup_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>

#include "base/system/file.h"
#include "base/text/hex.h"
#include "tracker/artifacts/rooted_dir.h"

namespace tune::tracker {
namespace {

constexpr std::size_t kTarBlock = 512;
constexpr std::size_t kReadBytes = 256 << 10;
/// What the name and size fields of a tar header hold; more goes into a header of its own (pax).
constexpr std::size_t kTarNameMax = 100;
constexpr std::uint64_t kTarSizeMax = 0777'7777'7777;

using Header = std::array<char, kTarBlock>;

// Places of the fields of POSIX.1-1988 ustar.
constexpr std::size_t kSizeAt = 124;
constexpr std::size_t kSizeChars = 11;
constexpr std::size_t kSumAt = 148;
constexpr std::size_t kTypeAt = 156;
constexpr std::size_t kMagicAt = 257;

unsigned header_sum(const Header& header) {
    unsigned sum = 0;
    for (std::size_t i = 0; i < header.size(); ++i)
        sum +=
            i >= kSumAt && i < kSumAt + 8 ? unsigned{' '} : static_cast<unsigned char>(header[i]);
    return sum;
}

void put_octal(Header& header, std::size_t at, std::size_t digits, std::uint64_t value) {
    for (std::size_t i = digits; i-- > 0; value /= 8)
        header[at + i] = static_cast<char>('0' + value % 8);
}

Header make_header(std::string_view name, std::uint64_t size_bytes, char type) {
    Header header{};
    std::memcpy(header.data(), name.data(), std::min(name.size(), kTarNameMax));
    put_octal(header, 100, 7, 0644);
    put_octal(header, 108, 7, 0);
    put_octal(header, 116, 7, 0);
    put_octal(header, kSizeAt, kSizeChars, std::min(size_bytes, kTarSizeMax));
    put_octal(header, 136, 11, 0);
    header[kTypeAt] = type;
    std::memcpy(header.data() + kMagicAt, "ustar\00000", 8);
    put_octal(header, kSumAt, 6, header_sum(header));
    header[kSumAt + 6] = '\0';
    header[kSumAt + 7] = ' ';
    return header;
}

/// "21 path=artifacts/...\n": the number counts the whole line.
std::string pax_line(std::string_view key, std::string_view value) {
    const std::size_t rest = key.size() + value.size() + 3;
    std::size_t length = rest + 1;
    while (std::to_string(length).size() + rest != length) ++length;
    std::string line = std::to_string(length) + " ";
    line.append(key).append("=").append(value).append("\n");
    return line;
}

std::uint64_t padding_of(std::uint64_t size_bytes) {
    return (kTarBlock - size_bytes % kTarBlock) % kTarBlock;
}

std::string system_reason() {
    return std::generic_category().message(errno);
}

Result<void> sync_folder_of(const std::filesystem::path& path) {
    const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
    const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd && ::fsync(fd.get()) == 0) return {};
    return disk_error(folder.string(), errno);
}

}  // namespace

// --- writing -------------------------------------------------------------------------------------

Result<std::unique_ptr<BackupWriter>> BackupWriter::create(const std::filesystem::path& path) {
    std::error_code ignored;
    if (std::filesystem::exists(std::filesystem::symlink_status(path, ignored)))
        return Error{Code::kResourceAlreadyExists,
                     "'" + path.string() + "' is there already; choose another name."};
    std::unique_ptr<BackupWriter> writer(new BackupWriter(path));
    const std::filesystem::path part = path.string() + ".part";
    writer->file_ = UniqueFd(::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!writer->file_)
        return Error{errno == EEXIST ? Code::kResourceAlreadyExists : Code::kPermissionDenied,
                     "Cannot make '" + part.string() + "' (" + system_reason() + ")."};
    writer->part_ = part;
    return writer;
}

BackupWriter::~BackupWriter() {
    if (!part_.empty()) ::unlink(part_.c_str());
}

Result<void> BackupWriter::put(std::string_view bytes) {
    digest_.update(bytes);
    size_bytes_ += bytes.size();
    if (!write_all(file_.get(), bytes)) return disk_error(part_.string(), errno);
    return {};
}

Result<void> BackupWriter::pad() {
    static constexpr std::array<char, kTarBlock> kZeros{};
    return put({kZeros.data(), static_cast<std::size_t>(padding_of(size_bytes_))});
}

Result<void> BackupWriter::begin(std::string_view name, std::uint64_t size_bytes) {
    TUNE_TRY_VOID(pad());
    std::string more;
    if (name.size() > kTarNameMax) more += pax_line("path", name);
    if (size_bytes > kTarSizeMax) more += pax_line("size", std::to_string(size_bytes));
    if (!more.empty()) {
        const Header header = make_header("tune-backup.pax", more.size(), 'x');
        TUNE_TRY_VOID(put({header.data(), header.size()}));
        TUNE_TRY_VOID(put(more));
        TUNE_TRY_VOID(pad());
    }
    const Header header = make_header(name, size_bytes, '0');
    TUNE_TRY_VOID(put({header.data(), header.size()}));
    entry_left_ = size_bytes;
    return {};
}

Result<void> BackupWriter::write(std::string_view bytes) {
    TUNE_CHECK(bytes.size() <= entry_left_, "more bytes than the entry was begun with");
    entry_left_ -= bytes.size();
    return put(bytes);
}

Result<void> BackupWriter::add(std::string_view name, std::string_view content) {
    TUNE_TRY_VOID(begin(name, content.size()));
    return write(content);
}

Result<std::string> BackupWriter::finish() {
    TUNE_CHECK(entry_left_ == 0, "fewer bytes than the entry was begun with");
    TUNE_TRY_VOID(pad());
    const std::string digest = hex_encode(digest_.finish());
    const Header header = make_header(kBackupDigest, digest.size() + 1, '0');
    std::string tail(header.data(), header.size());
    tail += digest + "\n";
    tail.resize(tail.size() + padding_of(tail.size()) + 2 * kTarBlock);
    if (!write_all(file_.get(), tail)) return disk_error(part_.string(), errno);
    size_bytes_ += tail.size();
    if (::fsync(file_.get()) != 0) return disk_error(part_.string(), errno);
    // Not rename(): a file that came there meanwhile stays.
    if (::link(part_.c_str(), path_.c_str()) != 0) return disk_error(path_.string(), errno);
    ::unlink(part_.c_str());
    part_.clear();
    TUNE_TRY_VOID(sync_folder_of(path_));
    return digest;
}

// --- reading -------------------------------------------------------------------------------------

Result<std::unique_ptr<BackupReader>> BackupReader::open(const std::filesystem::path& path) {
    std::unique_ptr<BackupReader> reader(new BackupReader(path.string()));
    reader->file_ = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!reader->file_)
        return Error{errno == ENOENT ? Code::kResourceDoesNotExist : Code::kPermissionDenied,
                     "Cannot read '" + path.string() + "' (" + system_reason() + ")."};
    struct stat about {};
    if (::fstat(reader->file_.get(), &about) != 0 || !S_ISREG(about.st_mode))
        return Error{Code::kInvalidParameterValue, "'" + path.string() + "' is no file."};
    reader->file_bytes_ = static_cast<std::uint64_t>(about.st_size);
    std::array<char, kTarBlock> head{};
    const ssize_t got = ::pread(reader->file_.get(), head.data(), head.size(), 0);
    const std::string_view name(head.data(), kBackupManifest.size() + 1);
    if (got != static_cast<ssize_t>(head.size()) ||
        name != std::string(kBackupManifest) + std::string(1, '\0'))
        return Error{Code::kInvalidParameterValue,
                     "'" + path.string() + "' is not a backup made by `tune backup`."};
    return reader;
}

Error BackupReader::damaged(const std::string& what) const {
    return {Code::kDataLoss, "The backup '" + path_ + "' is damaged: " + what +
                                 ". Nothing was restored; use another copy of it."};
}

Result<void> BackupReader::fill(char* target, std::size_t count) {
    std::size_t done = 0;
    while (done < count) {
        const ssize_t got = ::read(file_.get(), target + done, count - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return disk_error(path_, errno);
        if (got == 0)
            return damaged("it is cut off after " + std::to_string(file_bytes_) + " bytes");
        done += static_cast<std::size_t>(got);
    }
    position_ += count;
    return {};
}

Result<BackupReader::Entry> BackupReader::read_header() {
    Header header{};
    TUNE_TRY_VOID(fill(header.data(), header.size()));
    Entry entry;
    entry.name.assign(header.data(), ::strnlen(header.data(), kTarNameMax));
    unsigned sum = 0;
    std::from_chars(header.data() + kSumAt, header.data() + kSumAt + 6, sum, 8);
    const char* size = header.data() + kSizeAt;
    const auto [end, error] = std::from_chars(size, size + kSizeChars, entry.size_bytes, 8);
    if (sum != header_sum(header) || error != std::errc() || end != size + kSizeChars ||
        std::string_view(header.data() + kMagicAt, 5) != "ustar")
        return damaged("at byte " + std::to_string(position_ - kTarBlock) +
                       " there should be the head of an entry");
    is_at_digest_ = entry.name == kBackupDigest;
    if (!is_at_digest_) digest_.update({header.data(), header.size()});
    const char type = header[kTypeAt];
    if (type == 'x') {
        TUNE_TRY(real, [&]() -> Result<Entry> {
            Entry more;
            TUNE_TRY_VOID(read_long_header(entry.size_bytes, more));
            TUNE_TRY(next, read_header());
            if (!more.name.empty()) next.name = more.name;
            if (more.size_bytes > 0) next.size_bytes = more.size_bytes;
            return next;
        }());
        return real;
    }
    if (type != '0') return damaged("it holds something that is no file ('" + entry.name + "')");
    return entry;
}

/// The lines of a pax header: path and size.
Result<void> BackupReader::read_long_header(std::uint64_t size_bytes, Entry& entry) {
    if (size_bytes > kBackupNameBytesMax + kTarBlock || is_at_digest_)
        return damaged("the name of an entry is too long");
    std::string text(size_bytes + padding_of(size_bytes), '\0');
    TUNE_TRY_VOID(fill(text.data(), text.size()));
    digest_.update(text);
    text.resize(size_bytes);
    for (std::string_view left = text; !left.empty();) {
        std::size_t length = 0;
        const auto [space, error] = std::from_chars(left.data(), left.data() + left.size(), length);
        const auto begin = static_cast<std::size_t>(space - left.data()) + 1;
        if (error != std::errc() || length > left.size() || length <= begin + 1)
            return damaged("the head of an entry cannot be read");
        const std::string_view line = left.substr(begin, length - begin - 1);
        const std::size_t equals = line.find('=');
        const std::string_view value = line.substr(std::min(equals, line.size() - 1) + 1);
        if (line.starts_with("path=")) entry.name = value;
        if (line.starts_with("size="))
            std::from_chars(value.data(), value.data() + value.size(), entry.size_bytes);
        left.remove_prefix(length);
    }
    return {};
}

Result<std::optional<BackupReader::Entry>> BackupReader::next() {
    while (entry_left_ > 0) TUNE_TRY_VOID(read());
    if (padding_ > 0) {
        std::array<char, kTarBlock> rest{};
        const auto count = static_cast<std::size_t>(std::exchange(padding_, 0));
        TUNE_TRY_VOID(fill(rest.data(), count));
        digest_.update({rest.data(), count});
    }
    TUNE_TRY(entry, read_header());
    if (is_at_digest_) {
        TUNE_TRY_VOID(check_end());
        return std::optional<Entry>();
    }
    entry_left_ = entry.size_bytes;
    padding_ = padding_of(entry.size_bytes);
    return std::optional<Entry>(std::move(entry));
}

Result<std::string_view> BackupReader::read() {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(entry_left_, kReadBytes));
    buffer_.resize(count);
    TUNE_TRY_VOID(fill(buffer_.data(), count));
    digest_.update(buffer_);
    entry_left_ -= count;
    return std::string_view(buffer_);
}

Result<std::string> BackupReader::read_all(std::size_t bytes_max) {
    if (entry_left_ > bytes_max) return damaged("an entry is too large");
    std::string content;
    while (entry_left_ > 0) {
        TUNE_TRY(piece, read());
        content += piece;
    }
    return content;
}

Result<void> BackupReader::check_end() {
    std::string written(2 * Sha256Bytes().size(), '\0');
    TUNE_TRY_VOID(fill(written.data(), written.size()));
    if (written == hex_encode(digest_.finish())) return {};
    return damaged("its bytes do not have the SHA-256 that it names");
}

}  // namespace tune::tracker
