#include "worker/agent/start/spare_folders.h"

#include <cstdio>
#include <string>
#include <system_error>
#include <utility>

namespace tune::worker {

SpareFolders::SpareFolders(std::filesystem::path root) : root_(std::move(root)) {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
}

SpareFolders::~SpareFolders() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
}

Result<void> SpareFolders::make(const AttemptFiles& files, const AttemptRecord& record) {
    if (spare_.empty()) return files.create(record);
    const AttemptFiles spare(std::move(spare_.back()));
    spare_.pop_back();
    const bool is_made = spare.create(record) &&
                         std::rename(spare.directory().c_str(), files.directory().c_str()) == 0;
    if (is_made) return {};
    spare.remove();
    return files.create(record);
}

void SpareFolders::take_back(const AttemptFiles& files) {
    if (spare_.size() >= kMax) return files.remove();
    std::error_code error;
    if (spare_.empty()) std::filesystem::create_directories(root_, error);
    std::filesystem::path place = root_ / std::to_string(next_++);
    if (error || std::rename(files.directory().c_str(), place.c_str()) != 0) return files.remove();
    // Not before: a kill would leave half of it where a successor looks for attempts.
    const AttemptFiles spare(place);
    if (!spare.clear()) return spare.remove();
    spare_.push_back(std::move(place));
}

}  // namespace tune::worker
