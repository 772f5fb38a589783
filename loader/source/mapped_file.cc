#include "loader/source/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "base/system/file.h"

namespace tune::loader {
Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::filesystem::path& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return missing_or_system_error("open", path);
    struct stat info {};
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        Error error = S_ISDIR(info.st_mode)
                          ? Error{Code::kInternalError, "'" + path.string() + "' is a directory"}
                          : missing_or_system_error("inspect", path);
        close(fd);
        return error;
    }
    const auto size = static_cast<std::size_t>(info.st_size);
    const std::byte* data = nullptr;
    if (size > 0) {  // an empty mapping is an error of mmap
        void* const address = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
        if (address == MAP_FAILED) {
            Error error = missing_or_system_error("map", path);
            close(fd);
            return error;
        }
        data = static_cast<const std::byte*>(address);
    }
    close(fd);
    return std::shared_ptr<const MappedFile>(new MappedFile({data, size}));
}

MappedFile::~MappedFile() {
    if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::read_ahead() const {
    if (!bytes_.empty())
        madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), MADV_WILLNEED);
}

}  // namespace tune::loader
