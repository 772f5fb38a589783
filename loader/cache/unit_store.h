#pragma once
// Where units stand that are on this machine. Internal to the loader.

#include <cstddef>
#include <filesystem>
#include <functional>

#include "base/result.h"
#include "loader/format/compression.h"

namespace tune::loader {

/// What a format reads from: a unit is readable between put and drop(). Thread-safe.
class UnitStore {
public:
    virtual ~UnitStore() = default;

    /// Puts an opened unit in the store. `stays`: it will not be dropped before everybody has read
    /// it.
    using Put = std::function<void(bool stays)>;

    /// The kept file of a unit, opened. Errors: kDataLoss when it is damaged.
    [[nodiscard]] virtual Result<Put> open_file(std::size_t unit,
                                                const std::filesystem::path& path) const = 0;
    /// The same of its bytes.
    [[nodiscard]] virtual Result<Put> open_bytes(std::size_t unit, OwnedBytes raw) const = 0;
    /// What is kept, of the bytes that were fetched; both are checked. Errors: kDataLoss.
    [[nodiscard]] virtual Result<OwnedBytes> unpack(std::size_t unit, OwnedBytes fetched) const = 0;

    /// Reading the unit gives this error from now on, until it is put or dropped.
    virtual void fail(std::size_t unit, Error error) = 0;
    /// REQUIRES: nobody who counts on `stays` reads it.
    virtual void drop(std::size_t unit) = 0;
};

}  // namespace tune::loader
