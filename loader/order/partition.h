#pragma once
// Which samples of an epoch each rank reads, as mosaicml-streaming 0.13.0 partitions them
// (`relaxed`, which is `orig` unless the number of machines changed in an unusual way). Upstream
// builds a tensor [nodes, ranks, workers, batches, batch]; here a rank computes each of its samples
// from a position, so nothing of the size of an epoch exists beyond the rank's own ids.

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace tune::loader {

struct PartitionOptions {
    /// Samples of the epoch, > 0.
    std::int64_t sample_count = 0;
    std::int64_t num_canonical_nodes = 1;
    std::int64_t physical_nodes = 1;
    std::int64_t ranks_per_node = 1;
    /// Samples of a rank's batch.
    std::int64_t batch_size = 1;
    /// Samples that all ranks together have consumed already.
    std::int64_t drop_first = 0;
    /// Machines when the run began; 0: unknown, as now.
    std::int64_t initial_physical_nodes = 0;
};

/// The epoch seen from all ranks. Cheap to copy; every function is O(1).
class Partition {
public:
    /// Errors: kInvalidParameterValue when neither of canonical and physical nodes divides the
    /// other and no initial number explains it, when the global batch size does not divide by the
    /// initial number of ranks, when there are too few samples for the nodes, or when drop_first
    /// lies beyond the epoch.
    [[nodiscard]] static Result<Partition> make(const PartitionOptions& options);

    /// Samples (and gaps) of each rank; position k belongs to batch k / batch_size.
    [[nodiscard]] std::int64_t samples_per_rank() const { return samples_per_rank_; }

    /// Batches of each rank that have no gap on any rank.
    [[nodiscard]] std::int64_t full_batches() const { return full_batches_; }

    /// The sample at `position` of rank `rank` of node `node`; -1 is a gap that is never read
    /// (positions beyond samples_per_rank are gaps too).
    [[nodiscard]] std::int64_t at(std::int64_t node, std::int64_t rank,
                                  std::int64_t position) const;

    /// at() of every position of a rank, without its divisions.
    [[nodiscard]] std::vector<std::int64_t> positions(std::int64_t node, std::int64_t rank) const;

private:
    Partition() = default;

    [[nodiscard]] std::int64_t padded_column(std::int64_t column) const;
    [[nodiscard]] std::int64_t matrix_at(std::int64_t row, std::int64_t column) const;
    [[nodiscard]] std::int64_t flat_at(std::int64_t index) const;
    [[nodiscard]] std::int64_t orig_at(std::int64_t node, std::int64_t rank,
                                       std::int64_t position) const;

    std::int64_t sample_count_ = 0;
    std::int64_t canonical_nodes_ = 1;
    std::int64_t physical_nodes_ = 1;  // of the layout below, i.e. the initial ones when recut_
    std::int64_t ranks_per_node_ = 1;
    std::int64_t drop_first_ = 0;
    bool tiled_ = false;
    std::int64_t row_samples_ = 0;    // samples of a canonical node's row, without padding
    std::int64_t padding_ = 0;        // repeated columns at the end of each row
    std::int64_t padding_from_ = 0;   // the first column that the padding repeats
    bool padding_is_one_ = false;     // all padding repeats that one column
    std::int64_t node_samples_ = 0;   // samples of a node, before they are dealt to ranks
    std::int64_t node_repeats_ = 0;   // appended so that ranks get equal numbers
    std::int64_t repeats_from_ = -1;  // first of a node's samples to be repeated; -1: from 0, tiled
    std::int64_t samples_per_rank_ = 0;
    std::int64_t full_batches_ = 0;

    bool recut_ = false;  // relaxed: the initial layout's global batches, cut anew
    std::int64_t batch_size_ = 1;
    std::int64_t global_batch_ = 1;
    std::int64_t initial_batch_ = 1;
};

}  // namespace tune::loader
