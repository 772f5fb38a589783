// Samples are encoded one after the other into one buffer; when a shard is closed, its header and
// offset table are written before them. The kernel begins to bring each file to the disk at once,
// finish() waits for all of them, and index.json, which alone makes the data set readable, is
// written last. A crash therefore leaves either no index or a complete data set.

#include "loader/format/mds/writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/system/file.h"
#include "loader/format/hash.h"

namespace tune::loader {
namespace {

constexpr std::uint64_t kFileBytesMax = (std::uint64_t{1} << 32) - 1;

std::string_view text_of(const std::vector<std::uint32_t>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(std::uint32_t)};
}

/// Writes the pieces one after the other into a new file.
Result<void> write_pieces(const std::filesystem::path& path,
                          std::span<const std::string_view> pieces) {
    const auto failed = [&](const char* what, int fd) {
        Error error{Code::kInternalError, std::string("cannot ") + what + " '" + path.string() +
                                              "': " + std::strerror(errno)};
        if (fd >= 0) close(fd);
        unlink(path.c_str());
        return error;
    };
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) return failed("create", -1);
    for (const std::string_view piece : pieces)
        if (!write_all(fd, piece)) return failed("write", fd);
    // Begins to bring it to the disk; finish() waits for that before the index names it.
    sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    if (close(fd) != 0) return failed("write", -1);
    return {};
}

/// Waits until a file is on the disk.
Result<void> sync_file(const std::filesystem::path& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const bool is_synced = fd >= 0 && fsync(fd) == 0;
    const int reason = errno;
    if (fd >= 0) close(fd);
    if (is_synced) return {};
    return Error{Code::kInternalError,
                 "cannot write '" + path.string() + "': " + std::strerror(reason)};
}

std::string shard_name(std::size_t number) {
    std::array<char, 32> name{};
    std::snprintf(name.data(), name.size(), "shard.%05zu.mds", number);
    return name.data();
}

Result<void> check_hashes(const std::vector<std::string>& hashes) {
    for (std::size_t i = 0; i < hashes.size(); ++i) {
        TUNE_TRY_VOID(Hasher::make(hashes[i]));
        if (i > 0 && hashes[i - 1] == hashes[i])
            return invalid_parameter("hash '" + hashes[i] + "' is named twice");
    }
    return {};
}

Result<void> prepare_directory(const std::filesystem::path& directory) {
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (error)
        return Error{Code::kInternalError,
                     "cannot create '" + directory.string() + "': " + error.message()};
    if (!std::filesystem::is_empty(directory, error))
        return Error{Code::kResourceAlreadyExists,
                     "'" + directory.string() +
                         "' is not empty; a data set is written into a new "
                         "directory"};
    return {};
}

}  // namespace

Result<MdsWriter> MdsWriter::open(MdsWriterOptions options) {
    MdsWriter writer(std::move(options));
    MdsWriterOptions& wanted = writer.options_;
    ShardInfo& info = writer.info_;
    if (wanted.columns.empty()) return invalid_parameter("a data set needs at least one column");
    std::sort(wanted.columns.begin(), wanted.columns.end());
    for (const auto& [name, text] : wanted.columns) {
        if (!info.column_names.empty() && info.column_names.back() == name)
            return invalid_parameter("column '" + name + "' is named twice");
        Result<Encoding> encoding = parse_encoding(text);
        if (!encoding)
            return invalid_parameter("column '" + name + "': " + encoding.error().message);
        info.column_names.push_back(name);
        info.column_encodings.push_back(text);
        info.column_sizes.push_back(encoding->size);
        if (!encoding->size) ++writer.variable_count_;
        writer.encodings_.push_back(*std::move(encoding));
    }
    std::sort(wanted.hashes.begin(), wanted.hashes.end());
    TUNE_TRY_VOID(check_hashes(wanted.hashes));
    info.hashes = wanted.hashes;
    if (!wanted.compression.empty()) {
        TUNE_TRY(compression, parse_compression(wanted.compression));
        writer.compression_ = compression;
        info.compression = wanted.compression;
    }
    if (wanted.size_limit == 0) wanted.size_limit.reset();  // upstream: no limit
    if (wanted.size_limit && *wanted.size_limit > kFileBytesMax)
        return invalid_parameter("the size limit of a shard must be below 4 GiB");
    info.size_limit = wanted.size_limit;
    writer.config_ = shard_config(info);
    writer.sizes_.resize(writer.variable_count_);
    TUNE_TRY_VOID(prepare_directory(wanted.directory));
    return writer;
}

Result<void> MdsWriter::write(std::span<const Value> values) {
    TUNE_CHECK(values.size() == encodings_.size(), "a sample needs one value for each column");
    const std::size_t begin = samples_.size();
    samples_ += text_of(sizes_);  // filled in below
    std::size_t variable = 0;
    for (std::size_t column = 0; column < values.size(); ++column) {
        const std::size_t value_begin = samples_.size();
        Result<void> encoded = encode(encodings_[column], values[column], samples_);
        if (!encoded) {
            samples_.resize(begin);
            Error error = std::move(encoded).error();
            error.context = "column '" + info_.column_names[column] + "'";
            return error;
        }
        if (encodings_[column].size) continue;
        const auto size = static_cast<std::uint32_t>(samples_.size() - value_begin);
        std::memcpy(samples_.data() + begin + 4 * variable++, &size, sizeof size);
    }
    return add_sample(begin);
}

Result<void> MdsWriter::write_encoded(std::span<const std::span<const std::byte>> payloads) {
    TUNE_CHECK(payloads.size() == encodings_.size(), "a sample needs one value for each column");
    const std::size_t begin = samples_.size();
    std::size_t variable = 0;
    for (std::size_t column = 0; column < payloads.size(); ++column) {
        const std::optional<std::uint32_t>& size = encodings_[column].size;
        if (size && *size != payloads[column].size())
            return invalid_parameter("column '" + info_.column_names[column] +
                                     "': " + std::to_string(payloads[column].size()) +
                                     " bytes do not fit into " + encodings_[column].name);
        if (!size) sizes_[variable++] = static_cast<std::uint32_t>(payloads[column].size());
    }
    samples_ += text_of(sizes_);
    for (const std::span<const std::byte> payload : payloads)
        samples_.append(reinterpret_cast<const char*>(payload.data()), payload.size());
    return add_sample(begin);
}

/// Takes over the sample that stands in samples_ from `begin` on; closes the shard before it when
/// it would grow too large.
Result<void> MdsWriter::add_sample(std::size_t begin) {
    const std::uint64_t sample_bytes = samples_.size() - begin;
    const std::uint64_t before = 8 + config_.size() + begin + 4 * ends_.size();
    const std::uint64_t after = before + sample_bytes + 4;
    const bool is_first = ends_.empty();
    const std::uint64_t alone = 8 + config_.size() + sample_bytes + 4;
    if (alone > kFileBytesMax) {
        samples_.resize(begin);
        return invalid_parameter("a sample of " + std::to_string(sample_bytes) +
                                 " bytes does not fit into a shard, which holds less than 4 GiB");
    }
    const bool is_over = options_.size_limit && *options_.size_limit < after;
    if (!options_.size_limit && after > kFileBytesMax) {
        samples_.resize(begin);
        return invalid_parameter(
            "without a size limit all samples go into one shard, which holds less than "
            "4 GiB; set a size limit");
    }
    if (is_over && (!is_first || (options_.keeps_empty_shards && index_.shards.empty()))) {
        Result<void> flushed = flush_shard(std::string_view(samples_).substr(0, begin));
        if (!flushed) {
            samples_.resize(begin);
            return flushed;
        }
        samples_.erase(0, begin);
    }
    ends_.push_back(static_cast<std::uint32_t>(samples_.size()));
    ++samples_written_;
    return {};
}

Result<FileInfo> MdsWriter::file_info(std::string basename,
                                      std::span<const std::string_view> pieces) const {
    FileInfo file;
    file.basename = std::move(basename);
    for (const std::string_view piece : pieces) file.bytes += piece.size();
    for (const std::string& name : info_.hashes) {
        TUNE_TRY(hasher, Hasher::make(name));
        for (const std::string_view piece : pieces) hasher.update(std::as_bytes(std::span(piece)));
        file.hashes[name] = hasher.finish();
    }
    return file;
}

Result<void> MdsWriter::flush_shard(std::string_view samples) {
    std::vector<std::uint32_t> header;
    header.reserve(ends_.size() + 2);
    header.push_back(static_cast<std::uint32_t>(ends_.size()));
    const auto data_begin = static_cast<std::uint32_t>(4 * (ends_.size() + 2) + config_.size());
    header.push_back(data_begin);
    for (const std::uint32_t end : ends_) header.push_back(data_begin + end);

    const std::array<std::string_view, 3> raw_pieces = {text_of(header), config_, samples};
    ShardInfo shard = info_;
    shard.samples = static_cast<std::int64_t>(ends_.size());
    TUNE_TRY(raw, file_info(shard_name(index_.shards.size()), raw_pieces));
    shard.raw_data = std::move(raw);
    if (compression_) {
        std::string whole;
        whole.reserve(shard.raw_data.bytes);
        for (const std::string_view piece : raw_pieces) whole += piece;
        TUNE_TRY(zipped, compress(*compression_, whole));
        const std::array<std::string_view, 1> zip_pieces = {zipped};
        TUNE_TRY(zip,
                 file_info(shard.raw_data.basename + "." + std::string(compression_->extension()),
                           zip_pieces));
        shard.zip_data = std::move(zip);
        TUNE_TRY_VOID(write_pieces(options_.directory / shard.zip_data->basename, zip_pieces));
    } else {
        TUNE_TRY_VOID(write_pieces(options_.directory / shard.raw_data.basename, raw_pieces));
    }
    index_.shards.push_back(std::move(shard));
    ends_.clear();
    return {};
}

Result<Index> MdsWriter::finish() {
    if (!ends_.empty()) {
        TUNE_TRY_VOID(flush_shard(samples_));
        samples_.clear();
    }
    for (const ShardInfo& shard : index_.shards) {
        const FileInfo& file = shard.zip_data ? *shard.zip_data : shard.raw_data;
        std::error_code ignored;
        if (options_.files_may_leave &&
            !std::filesystem::exists(options_.directory / file.basename, ignored))
            continue;
        TUNE_TRY_VOID(sync_file(options_.directory / file.basename));
    }
    TUNE_TRY_VOID(write_file_atomic(options_.directory / "index.json", index_text(index_)));
    return std::move(index_);
}

}  // namespace tune::loader
