#pragma once
// Where the files of a data set come from: a folder, an object store, a web server. All formats
// read through this one interface, so that each of them works from each place.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tune::loader {

/// One file of a source.
struct ObjectInfo {
    /// Relative to the source, '/' between parts, never with "..".
    std::string path = {};
    std::uint64_t bytes = 0;
    /// Differs when the contents differ: the ETag, or size and time of change. Empty where the
    /// source has nothing of the kind.
    std::string version = {};
};

/// A tree of files that can be read at any position. Thread-safe; every method waits for the
/// network where there is one, within the time-outs that the source was opened with.
class ObjectSource {
public:
    virtual ~ObjectSource() = default;

    /// Errors: kResourceDoesNotExist, kPermissionDenied, kTemporarilyUnavailable (after its
    /// retries, with the last reason); each names the URL.
    [[nodiscard]] virtual Result<ObjectInfo> stat(std::string_view path) const = 0;

    /// Every file beneath `folder` ("" is the whole source), sorted by path. Errors: as stat();
    /// kNotImplemented where a source cannot list (plain HTTP).
    [[nodiscard]] virtual Result<std::vector<ObjectInfo>> list(std::string_view folder) const = 0;

    /// Fills `bytes` from `offset` on. Errors: as stat(); kDataLoss when the object is shorter, or
    /// is no longer the version that `object` names.
    [[nodiscard]] virtual Result<void> read(const ObjectInfo& object, std::uint64_t offset,
                                            std::span<std::byte> bytes) const = 0;

    /// What it was opened with, without credentials; for error messages.
    [[nodiscard]] virtual const std::string& url() const = 0;

    /// The folder on this machine, where the source is one: its files can be mapped.
    [[nodiscard]] virtual std::optional<std::filesystem::path> local_folder() const { return {}; }
};

/// Whether `path` may be asked of a source: relative, without "..", without a NUL. An empty one is
/// the object that the source's own URL names.
[[nodiscard]] bool is_object_path(std::string_view path);

/// The whole object as text. Errors: those of stat() and read(); kResourceExhausted when it is
/// larger than `bytes_max`.
[[nodiscard]] Result<std::string> read_object(const ObjectSource& source, std::string_view path,
                                              std::size_t bytes_max = 256u << 20);

}  // namespace tune::loader
