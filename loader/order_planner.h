#pragma once
// From options and a position to the batches of one rank. Internal to the loader.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "loader/dataset.h"
#include "loader/epoch_plan.h"
#include "loader/order/epoch.h"

namespace tune::loader {

/// Where the rank stands among machines, counting ranks that read the same samples once.
struct Topology {
    std::int64_t nodes = 1;
    std::int64_t ranks_per_node = 1;
    std::int64_t node = 0;
    std::int64_t rank_of_node = 0;

    [[nodiscard]] std::int64_t ranks() const { return nodes * ranks_per_node; }
    [[nodiscard]] std::int64_t rank() const { return node * ranks_per_node + rank_of_node; }
};

/// Errors: kInvalidParameterValue for a rank that does not exist or numbers that do not divide.
[[nodiscard]] Result<Topology> topology_of(const World& world);

/// What a state may change of the order: everything else is fixed by the options.
struct OrderSettings {
    std::int64_t num_canonical_nodes = 1;
    std::uint64_t seed = 9176;
    std::int64_t initial_physical_nodes = 0;
};

/// Immutable; any thread may call it.
class OrderPlanner {
public:
    /// `block_samples_max`: of a shuffle's block where no size is given; 0: any number.
    OrderPlanner(const DatasetOptions& options, Topology topology, std::vector<Stream> streams,
                 std::int64_t block_samples_max);

    [[nodiscard]] const Topology& topology() const { return topology_; }
    [[nodiscard]] OrderSettings default_settings() const;
    /// Samples of an epoch.
    [[nodiscard]] std::int64_t epoch_size() const;

    /// Whether these settings give an order that can be entered after `sample_in_epoch` samples.
    /// What stands in the way of the batching methods beside random is an error of plan() only.
    /// Cost: O(1).
    [[nodiscard]] Result<void> check(const OrderSettings& settings,
                                     std::int64_t sample_in_epoch) const;

    /// Batches of this rank (and worker) in a whole epoch. Cost: O(1) for batching random, else
    /// that of an epoch's order.
    [[nodiscard]] Result<std::int64_t> batches_per_epoch(const OrderSettings& settings) const;

    /// Everything that decides the order and is not a field of the state.
    [[nodiscard]] std::string order_text(const OrderSettings& settings) const;

    /// What this rank reads from `position` on, by worker `worker` of `workers`.
    [[nodiscard]] Result<std::shared_ptr<const EpochPlan>> plan(const OrderSettings& settings,
                                                                Position position,
                                                                std::int64_t worker,
                                                                std::int64_t workers) const;

private:
    [[nodiscard]] std::int64_t block_size(const OrderSettings& settings) const;
    [[nodiscard]] ShuffleOptions shuffle_options(const OrderSettings& settings,
                                                 std::int64_t epoch) const;
    [[nodiscard]] EpochOptions epoch_options(const OrderSettings& settings,
                                             Position position) const;
    [[nodiscard]] Result<LazyRank> lazy_rank(const OrderSettings& settings,
                                             Position position) const;

    const DatasetOptions options_;
    const Topology topology_;
    const std::vector<Stream> streams_;
    const std::int64_t block_samples_max_;
};

}  // namespace tune::loader
