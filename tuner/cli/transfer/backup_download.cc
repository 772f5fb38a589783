// The bytes go into FILE.part, which becomes FILE when it is whole and on disk: a file that looks
// like a backup is one.

#include "tuner/cli/transfer/backup_download.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/log.h"
#include "base/system/file.h"
#include "base/system/unique_fd.h"
#include "base/text/percent.h"
#include "tracker/client/mlflow_environment.h"

namespace tune::cli {
namespace {

/// Between two pieces: a server that writes other backups is slow, not gone.
constexpr int kSilence_ms = 60'000;

Error file_error(const std::filesystem::path& file, int number) {
    return {
        number == ENOSPC ? Code::kResourceExhausted : Code::kInternalError,
        "'" + file.string() + "' could not be written: " + std::generic_category().message(number)};
}

/// Removes the file unless it is kept.
class PartFile {
public:
    explicit PartFile(std::filesystem::path path)
        : path_(std::move(path)),
          fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {}
    ~PartFile() {
        if (fd_ && !is_kept_) ::unlink(path_.c_str());
    }
    PartFile(const PartFile&) = delete;
    PartFile& operator=(const PartFile&) = delete;

    [[nodiscard]] int fd() const { return fd_.get(); }
    [[nodiscard]] Result<void> keep_as(const std::filesystem::path& file) {
        if (::fsync(fd_.get()) != 0 || ::rename(path_.c_str(), file.c_str()) != 0)
            return file_error(file, errno);
        is_kept_ = true;
        return {};
    }

private:
    std::filesystem::path path_;
    UniqueFd fd_;
    bool is_kept_ = false;
};

}  // namespace

Result<void> download_backup(const std::string& url, const std::string& name,
                             std::uint64_t size_bytes, const std::filesystem::path& file,
                             const std::function<bool(std::uint64_t bytes)>& report) {
    std::error_code ignored;
    if (std::filesystem::exists(file, ignored))
        return Error{Code::kResourceAlreadyExists,
                     "'" + file.string() + "' is there already; choose another name."};
    TUNE_TRY(client, tracker::create_client({.url = url}));
    PartFile part(file.string() + ".part");
    if (part.fd() < 0) return file_error(file, errno);
    const std::string path = "/api/2.0/tune/backups/" + percent_encode(name, false);
    std::uint64_t bytes_so_far = 0;
    const auto take = [&](std::string_view bytes) -> Result<void> {
        bytes_so_far += bytes.size();
        if (!report(bytes_so_far)) return Error{Code::kCancelled, "interrupted"};
        return write_all(part.fd(), bytes) ? Result<void>() : file_error(file, errno);
    };
    TUNE_TRY_VOID(client->get_file(path, take, kSilence_ms));
    if (bytes_so_far != size_bytes)
        return Error{Code::kDataLoss, "the server's backup has " + std::to_string(size_bytes) +
                                          " bytes, and " + std::to_string(bytes_so_far) + " came"};
    TUNE_TRY_VOID(part.keep_as(file));
    const Result<Json> removed = client->remove(path, Json::object());
    if (!removed) log_warning("the server keeps its copy of the backup: " + removed.error().text());
    return {};
}

}  // namespace tune::cli
