#include "worker/agent/checkpoints/empty_folders.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>

namespace tune::worker {
namespace fs = std::filesystem;
namespace {

/// Mode and kind of what is there under this name itself; 0: nothing is.
unsigned mode_of(const fs::path& path) {
    struct stat info {};
    return lstat(path.c_str(), &info) == 0 ? info.st_mode : 0;
}

}  // namespace

EmptyFolders::EmptyFolders(fs::path root, const fs::path& served)
    : root_(std::move(root)), served_(fs::absolute(served).lexically_normal()) {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
}

EmptyFolders::~EmptyFolders() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
}

bool EmptyFolders::is_served(const fs::path& folder) const {
    const fs::path normal = folder.lexically_normal();
    return std::mismatch(served_.begin(), served_.end(), normal.begin(), normal.end()).first ==
           served_.end();
}

Result<void> EmptyFolders::make(const fs::path& folder) {
    std::error_code error;
    if (!spare_.empty() && is_served(folder) && mode_of(folder) == 0) {
        const fs::path spare = std::move(spare_.back());
        spare_.pop_back();
        if (std::rename(spare.c_str(), folder.c_str()) == 0) return {};
        rmdir(spare.c_str());
    }
    fs::create_directories(folder, error);
    if (error)
        return Error{Code::kInternalError, "cannot create the checkpoint folder '" +
                                               folder.string() + "': " + error.message()};
    if (mode_ == 0 && is_served(folder)) mode_ = mode_of(folder);
    return {};
}

void EmptyFolders::take_back(const fs::path& folder) {
    std::error_code error;
    // A trial that changed its folder's rights leaves them to no other.
    const bool is_spare = spare_.size() < kMax && mode_ != 0 && is_served(folder) &&
                          mode_of(folder) == mode_ && fs::is_empty(folder, error) && !error;
    if (is_spare) {
        if (next_ == 0) fs::create_directories(root_, error);
        fs::path place = root_ / std::to_string(next_++);
        if (!error && std::rename(folder.c_str(), place.c_str()) == 0)
            return spare_.push_back(std::move(place));
    }
    rmdir(folder.c_str());  // refused if something is in it
}

}  // namespace tune::worker
