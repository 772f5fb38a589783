#pragma once
// Samples by number, of data that may have to be fetched. Internal to the loader.

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/result.h"
#include "loader/batch_decoder.h"
#include "loader/batch_slot.h"
#include "loader/batch_supply.h"

namespace tune::loader {

/// Thread-safe. Uses the supply's plans: nobody else may follow one meanwhile.
class SampleAccess {
public:
    /// `supply`: nullptr for data that is all on this machine.
    SampleAccess(const BatchDecoder& decoder, BatchSupply* supply)
        : decoder_(decoder), supply_(supply) {}

    /// These will be read one by one, in this order: so they are fetched ahead.
    void expect(std::vector<std::int64_t> ids);

    /// Reads samples, expected or not, waiting until they are here. Errors: those of the decoder.
    [[nodiscard]] Result<void> read(std::span<const std::int64_t> ids, BatchSlot& slot);

private:
    void follow_expected();
    [[nodiscard]] std::uint64_t begin(std::span<const std::int64_t> ids);

    const BatchDecoder& decoder_;
    BatchSupply* const supply_;

    std::mutex mutex_;
    std::vector<std::int64_t> expected_;  // all below is guarded by mutex_
    std::size_t next_ = 0;                // of expected_
    std::uint64_t base_ = 0;              // the supply's number of expected_[first_]
    std::size_t first_ = 0;
    bool is_following_ = false;  // the supply looks ahead along expected_
};

}  // namespace tune::loader
