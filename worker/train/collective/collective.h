#pragma once
// What processes that train one model together tell each other, without LibTorch in sight.
// gradients.h has what only tensors need.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "worker/train/collective/ranks.h"

namespace tune::train {

/// A sum over the ranks that is on its way.
class PendingSum {
public:
    virtual ~PendingSum() = default;
    /// Once. All ranks get the same bits. Errors: as those of Collective.
    [[nodiscard]] virtual Result<std::vector<double>> wait() = 0;
};

/// A group of ranks. Every method but rank() and size() is a collective: all ranks call the same
/// ones in the same order, from one thread each, and wait for each other. Errors of all of them:
/// kTemporarilyUnavailable when a rank is gone or does not answer within the time-out; the group is
/// of no use from then on.
class Collective {
public:
    virtual ~Collective() = default;

    [[nodiscard]] virtual std::int64_t rank() const = 0;
    [[nodiscard]] virtual std::int64_t size() const = 0;
    [[nodiscard]] bool is_first() const { return rank() == 0; }

    /// What each rank gave, by rank; all give the same number of values.
    [[nodiscard]] virtual Result<std::vector<std::vector<double>>> gather(
        std::span<const double> values) = 0;
    /// Every rank's `bytes` become those of rank `from`.
    [[nodiscard]] virtual Result<void> broadcast(std::string& bytes, std::int64_t from) = 0;
    /// Returns once all ranks have come here.
    [[nodiscard]] virtual Result<void> barrier() = 0;

    /// Adds up over the ranks, in their order: all get the same bits.
    [[nodiscard]] Result<void> sum(std::span<double> values);
    /// The same without waiting: other collectives may follow before the sum is asked for.
    [[nodiscard]] virtual Result<std::unique_ptr<PendingSum>> start_sum(
        std::span<const double> values) = 0;
    /// Whether it is true of any rank.
    [[nodiscard]] Result<bool> any(bool own);
    /// The same outcome everywhere: without an error on any rank nothing, else that of the lowest
    /// rank that has one, with the rank's number in the message of the others.
    [[nodiscard]] Result<void> agree(const Result<void>& own);
    /// What rank 0's `make` returned, on every rank; the others do not call theirs. Errors: also
    /// those of `make`, as agree() gives them.
    [[nodiscard]] Result<std::string> from_first(const std::function<Result<std::string>()>& make);
};

class Device;

struct CollectiveOptions {
    /// For every collective, and for the ranks to find each other.
    std::chrono::milliseconds timeout = std::chrono::minutes(10);
    /// Where the gradients lie; null: on the CPU. Outlives the group.
    Device* device = nullptr;
};

/// Alone: every collective returns at once.
[[nodiscard]] std::unique_ptr<Collective> alone();

/// Meets the other ranks and returns when all are there: c10d's TCPStore and Gloo, and for
/// gradients on a GPU NCCL. Errors:
/// kTemporarilyUnavailable when they do not come within the time-out.
[[nodiscard]] Result<std::unique_ptr<Collective>> meet(const Ranks& ranks,
                                                       const CollectiveOptions& options);

}  // namespace tune::train
