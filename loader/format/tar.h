#pragma once
// Archives of tar (POSIX ustar and pax, GNU), as far as data sets use them.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace tune::loader {

/// A regular file in an archive.
struct TarMember {
    std::string name;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
};

/// Fills the span from an offset of the archive on.
using ReadArchive = std::function<Result<void>(std::uint64_t offset, std::span<std::byte> bytes)>;

/// The regular files of an archive of `bytes` bytes, in their order; folders and links are passed
/// over. Reads headers only. Errors: kDataLoss with the offset, for a header whose checksum is
/// wrong, a size beyond the end, or a name that is absolute or holds ".."; those of `read`.
[[nodiscard]] Result<std::vector<TarMember>> list_tar(std::uint64_t bytes, const ReadArchive& read);

}  // namespace tune::loader
