#pragma once
// Decoded images that the processes of one machine share, so that of N trials over the same images
// one decodes each. Internal to the loader.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/system/unique_fd.h"
#include "loader/decode/image_file.h"

namespace tune::loader {

/// A file of pixels, mapped by all who read the same data; in /dev/shm it is shared memory.
/// Thread-safe, and safe between processes: an image is written first and published afterwards, so
/// a process that dies leaves unused bytes and nothing else. Who reads last removes the file (its
/// lock is the kernel's, so that a killed process counts as gone); what others left behind is
/// removed when a file is opened.
class SharedPixels {
public:
    /// The file of the images `digest` in `folder`, of at most `bytes_max`; made if need be.
    /// Errors: kPermissionDenied with the system's reason; kInvalidParameterValue when another
    /// user's limit left no room for the table of `samples`.
    [[nodiscard]] static Result<std::shared_ptr<SharedPixels>> open(
        const std::filesystem::path& folder, const std::string& digest, std::int64_t samples,
        std::uint64_t bytes_max);
    ~SharedPixels();
    SharedPixels(const SharedPixels&) = delete;
    SharedPixels& operator=(const SharedPixels&) = delete;

    /// The whole image of a sample, if somebody has put it here. It stays until this object goes.
    /// Wait-free.
    [[nodiscard]] std::optional<PixelView> find(std::int64_t sample) const;
    /// Whether put() may find room for so many bytes.
    [[nodiscard]] bool has_room(std::size_t bytes) const;
    /// Puts a decoded image here; nothing happens when there is no room.
    void put(std::int64_t sample, const PixelView& pixels);

private:
    struct Header;
    struct Image;

    SharedPixels(UniqueFd file, std::filesystem::path path, std::byte* memory, std::size_t bytes,
                 std::int64_t samples);
    [[nodiscard]] Header& header() const;
    [[nodiscard]] std::uint64_t* places() const;

    UniqueFd file_;
    std::filesystem::path path_;
    std::byte* memory_;
    std::size_t bytes_;
    std::int64_t samples_;
};

}  // namespace tune::loader
