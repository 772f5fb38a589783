#pragma once
// One multipart upload on disk: a hidden folder that a restarted server can resume.
//
//   upload   what is uploaded: version, secret, number of parts, time, path; a line each
//   log      "+ number offset bytes sha256 time_ms" when a part is on disk (offset -1: in `tail`),
//            "- number" when it is about to be overwritten
//   data     the file to be; each part at its offset. Gone once the file has its name: what is left
//            then only says that this upload was completed
//   tail     the last part, when it came before its offset was known

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/crypto/digest.h"
#include "base/result.h"
#include "base/system/unique_fd.h"

namespace tune::tracker {

struct UploadPlan {
    /// 32 hex digits; the folder's name.
    std::string id;
    /// Normal form, under the artifact root.
    std::string path;
    /// The key that signs this upload's part URLs.
    std::string secret;
    int part_count = 0;
    std::int64_t created_ms = 0;
};

struct StoredPart {
    enum class Place : std::uint8_t { kNone, kData, kTail };
    Place place = Place::kNone;
    std::uint64_t size_bytes = 0;
    Sha256Bytes digest{};
};

/// Not thread-safe; every call blocks on the disk. Holds no file open between calls, so that open
/// uploads cost no descriptors.
class UploadFolder {
public:
    /// Makes the folder in `staging`, which outlives this object. On disk when it returns.
    [[nodiscard]] static Result<std::unique_ptr<UploadFolder>> create(int staging, UploadPlan plan);

    struct Loaded {
        std::unique_ptr<UploadFolder> folder;
        /// By part number - 1.
        std::vector<StoredPart> parts;
        /// The size of all parts but the last; 0 while unknown.
        std::uint64_t part_bytes = 0;
        std::int64_t last_used_ms = 0;
        /// The file has its name already; `parts` are empty and last_used_ms is when that happened.
        bool is_published = false;
    };
    /// What a former process left. Errors: kDataLoss if it is not a whole upload.
    [[nodiscard]] static Result<Loaded> load(int staging, const std::string& id,
                                             int part_count_max);

    [[nodiscard]] const UploadPlan& plan() const { return plan_; }

    /// `data` or `tail`, to write.
    [[nodiscard]] Result<UniqueFd> open_for_part(bool in_tail) const;

    /// REQUIRES: the part's bytes are on disk.
    [[nodiscard]] Result<void> note_part(int number, std::uint64_t offset, const StoredPart& part,
                                         std::int64_t now_ms) const;

    /// On disk when it returns: only then may the part's bytes be overwritten.
    [[nodiscard]] Result<void> note_dropped(int number) const;

    /// Makes `data` the whole file of `size_bytes`, with the tail (if it is apart) at
    /// `tail_offset`, on disk.
    [[nodiscard]] Result<void> assemble(std::uint64_t size_bytes, bool has_tail,
                                        std::uint64_t tail_offset) const;

    /// Gives the assembled file its name: replaces `name` of `directory` at once.
    [[nodiscard]] Result<void> publish(int directory, const std::string& name) const;

    /// Deletes what a published upload needs no more, but for `upload`.
    void keep_plan_only() const;

    /// Deletes the folder.
    [[nodiscard]] Result<void> remove() const;

private:
    UploadFolder(int staging, UploadPlan plan) : staging_(staging), plan_(std::move(plan)) {}
    [[nodiscard]] Result<UniqueFd> open_folder() const;
    [[nodiscard]] Result<void> append(const std::string& line, bool sync) const;
    [[nodiscard]] Result<void> read_log(Loaded& loaded) const;
    /// When the file got its name; nothing while it has none.
    [[nodiscard]] static std::optional<std::int64_t> published_ms(int folder);

    int staging_;
    UploadPlan plan_;
};

}  // namespace tune::tracker
