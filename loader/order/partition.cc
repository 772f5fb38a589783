// Upstream builds a tensor over nodes, ranks, workers and batches by padding, repeating, reshaping
// and transposing an array of all ids. Each of these is a formula on indices; at() composes them in
// reverse, from a rank's position to the sample number. The counts are bounded in make(), so the
// products fit 64 bits. The tests compare the formula with the tensors of upstream.

#include "loader/order/partition.h"

#include <algorithm>
#include <string>

namespace tune::loader {
namespace {

bool either_divides(std::int64_t a, std::int64_t b) {
    return a % b == 0 || b % a == 0;
}

std::string plural(std::int64_t count, const char* noun) {
    return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

Result<void> check(const PartitionOptions& options) {
    // Far beyond any run; they keep the products below from overflowing.
    constexpr std::int64_t kSamplesMax = std::int64_t{1} << 40;
    constexpr std::int64_t kNodesMax = std::int64_t{1} << 20;
    if (options.sample_count <= 0) return invalid_parameter("the epoch has no samples");
    if (options.sample_count > kSamplesMax || options.batch_size > kSamplesMax ||
        options.num_canonical_nodes > kNodesMax || options.physical_nodes > kNodesMax ||
        options.ranks_per_node > kNodesMax || options.initial_physical_nodes > kNodesMax)
        return invalid_parameter("more samples, nodes or ranks than can be counted");
    if (options.num_canonical_nodes <= 0 || options.physical_nodes <= 0 ||
        options.ranks_per_node <= 0 || options.batch_size <= 0 || options.drop_first < 0 ||
        options.initial_physical_nodes < 0)
        return invalid_parameter("nodes, ranks and batch size must be positive");
    const std::int64_t world = options.physical_nodes * options.ranks_per_node;
    if (options.sample_count + (world - options.sample_count % world) < options.drop_first)
        return invalid_parameter("sample " + std::to_string(options.drop_first) +
                                 " of the epoch was asked for, but the epoch has only " +
                                 plural(options.sample_count, "sample"));
    return {};
}

}  // namespace

Result<Partition> Partition::make(const PartitionOptions& options) {
    TUNE_TRY_VOID(check(options));
    Partition plan;
    plan.sample_count_ = options.sample_count;
    plan.canonical_nodes_ = options.num_canonical_nodes;
    plan.ranks_per_node_ = options.ranks_per_node;
    plan.batch_size_ = options.batch_size;
    plan.physical_nodes_ = options.physical_nodes;
    plan.recut_ = options.initial_physical_nodes != 0 &&
                  !either_divides(options.num_canonical_nodes, options.physical_nodes);
    if (plan.recut_) {
        plan.physical_nodes_ = options.initial_physical_nodes;
        plan.global_batch_ = options.physical_nodes * options.ranks_per_node * options.batch_size;
        const std::int64_t initial_ranks = plan.physical_nodes_ * options.ranks_per_node;
        if (plan.global_batch_ % initial_ranks != 0)
            return invalid_parameter(
                "the global batch of " + plural(plan.global_batch_, "sample") +
                " does not divide by the " + plural(initial_ranks, "rank") +
                " that the run began with; keep the global batch size when resuming");
        plan.initial_batch_ = plan.global_batch_ / initial_ranks;
    }
    if (!either_divides(plan.canonical_nodes_, plan.physical_nodes_))
        return invalid_parameter(plural(plan.canonical_nodes_, "canonical node") + " and " +
                                 plural(plan.physical_nodes_, "machine") +
                                 ": one of the two numbers must divide the other");

    // One row of samples a canonical node, padded so that a row divides among its machines.
    plan.row_samples_ = (plan.sample_count_ + plan.canonical_nodes_ - 1) / plan.canonical_nodes_;
    const std::int64_t ratio = plan.canonical_nodes_ < plan.physical_nodes_
                                   ? plan.physical_nodes_ / plan.canonical_nodes_
                                   : 1;
    plan.padding_ = (ratio - plan.row_samples_ % ratio) % ratio;
    const std::int64_t columns = plan.row_samples_ + plan.padding_;
    plan.tiled_ = plan.sample_count_ < plan.canonical_nodes_ ||
                  (plan.sample_count_ == plan.canonical_nodes_ && ratio > 1);
    if (plan.padding_ > 0 && !plan.tiled_) {
        const std::int64_t end = std::max<std::int64_t>(columns - plan.padding_ - ratio + 1, 0);
        plan.padding_from_ = std::max<std::int64_t>(end - plan.padding_, 0);
        const std::int64_t width = end - plan.padding_from_;
        plan.padding_is_one_ = width == 1;
        if (width != plan.padding_ && width != 1)
            return invalid_parameter(plural(plan.sample_count_, "sample") + " are too few for " +
                                     plural(plan.physical_nodes_, "machine"));
    }

    // A machine's samples, and the repeats that give its ranks equal numbers.
    plan.drop_first_ = options.drop_first - options.drop_first % plan.physical_nodes_;
    const std::int64_t left =
        std::max<std::int64_t>(plan.canonical_nodes_ * columns - plan.drop_first_, 0);
    const std::int64_t ranks = plan.ranks_per_node_;
    plan.node_samples_ = left / plan.physical_nodes_;
    plan.node_repeats_ = (ranks - plan.node_samples_ % ranks) % ranks;
    if (ranks + plan.node_repeats_ - 1 <= plan.node_samples_)
        plan.repeats_from_ = plan.node_samples_ - ranks - plan.node_repeats_ + 1;
    plan.samples_per_rank_ = (plan.node_samples_ + plan.node_repeats_) / ranks;
    plan.full_batches_ =
        plan.samples_per_rank_ / (plan.recut_ ? plan.initial_batch_ : plan.batch_size_);
    if (plan.recut_) {
        const std::int64_t batches =
            (plan.samples_per_rank_ + plan.initial_batch_ - 1) / plan.initial_batch_;
        plan.samples_per_rank_ = batches * options.batch_size;
    }
    return plan;
}

std::int64_t Partition::padded_column(std::int64_t column) const {
    if (column < row_samples_) return column;
    return padding_from_ + (padding_is_one_ ? 0 : column - row_samples_);
}

std::int64_t Partition::matrix_at(std::int64_t row, std::int64_t column) const {
    if (tiled_) return (row * (row_samples_ + padding_) + column) % sample_count_;
    column = padded_column(column);
    const std::int64_t start = row * sample_count_ / canonical_nodes_;
    const std::int64_t stop = (row + 1) * sample_count_ / canonical_nodes_;
    const bool repeats_last = column == row_samples_ - 1 && stop - start < row_samples_;
    return start + column - (repeats_last ? 1 : 0);
}

std::int64_t Partition::flat_at(std::int64_t index) const {
    index += drop_first_;
    return matrix_at(index % canonical_nodes_, index / canonical_nodes_);
}

std::int64_t Partition::orig_at(std::int64_t node, std::int64_t rank, std::int64_t position) const {
    std::int64_t of_node = rank + ranks_per_node_ * position;
    if (of_node >= node_samples_) {
        const std::int64_t repeat = of_node - node_samples_;
        if (repeat >= node_repeats_ || node_samples_ == 0) return -1;
        of_node = repeats_from_ >= 0 ? repeats_from_ + repeat : repeat % node_samples_;
    }
    return flat_at(node + physical_nodes_ * of_node);
}

std::int64_t Partition::at(std::int64_t node, std::int64_t rank, std::int64_t position) const {
    if (!recut_) return orig_at(node, rank, position);
    const std::int64_t batch = position / batch_size_;
    const std::int64_t in_global =
        (node * ranks_per_node_ + rank) * batch_size_ + position % batch_size_;
    const std::int64_t initial_rank = in_global / initial_batch_;
    return orig_at(initial_rank / ranks_per_node_, initial_rank % ranks_per_node_,
                   batch * initial_batch_ + in_global % initial_batch_);
}

std::vector<std::int64_t> Partition::positions(std::int64_t node, std::int64_t rank) const {
    std::vector<std::int64_t> samples(static_cast<std::size_t>(samples_per_rank_));
    std::size_t k = 0;
    if (!recut_ && !tiled_) {
        // flat_at() of an index that grows by the same step: row and column are carried along.
        std::vector<std::int64_t> starts;
        for (std::int64_t each = 0; each <= canonical_nodes_; ++each)
            starts.push_back(each * sample_count_ / canonical_nodes_);
        const std::int64_t step = physical_nodes_ * ranks_per_node_;
        const std::int64_t rows = canonical_nodes_;
        const std::int64_t row_step = step % rows;
        const std::int64_t column_step = step / rows;
        const std::int64_t first = drop_first_ + node + physical_nodes_ * rank;
        std::int64_t row = first % canonical_nodes_;
        std::int64_t column = first / canonical_nodes_;
        for (std::int64_t of_node = rank; of_node < node_samples_; of_node += ranks_per_node_) {
            const std::int64_t start = starts[static_cast<std::size_t>(row)];
            const std::int64_t stop = starts[static_cast<std::size_t>(row) + 1];
            const std::int64_t stored = padded_column(column);
            const bool repeats_last = stored == row_samples_ - 1 && stop - start < row_samples_;
            samples[k++] = start + stored - (repeats_last ? 1 : 0);
            row += row_step;
            column += column_step;
            if (row < rows) continue;
            row -= rows;
            ++column;
        }
    }
    for (; k < samples.size(); ++k) samples[k] = at(node, rank, static_cast<std::int64_t>(k));
    return samples;
}

}  // namespace tune::loader
