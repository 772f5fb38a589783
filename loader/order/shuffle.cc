// The sample orders of mosaicml-streaming 0.13.0
// (streaming/base/shuffle/{naive,py1s,py2s,py1br,py1e}.py), id for id. A run that moves here keeps
// its order; tests compare whole epochs with recorded ones.
//
// All but `naive` begin with shards shuffled by the run's seed and divided evenly among the
// canonical nodes, then shuffled within each node by the epoch's seed. So the shards of a node are
// the same in every epoch, however many machines there are, and only their order changes. Then:
//
// py1s shuffles the samples within each part of a shard; py2s does so twice, before and after
// shards are cut. py1br cuts each node's samples into blocks of 75 to 125 % of block_size, which
// overlap by a stagger per node, and shuffles each. py1e moves every sample by a uniform distance,
// at most half of what such a block exceeds its shard by, and sorts by the new positions: a sample
// meets others from the whole block, and yet only about block_size / shard size shards are open at
// once, without the steps in demand at the edges of py1br's blocks.
//
// Why it is right: random numbers are drawn in upstream's order from the same generators (rng.h),
// and positions are computed in upstream's order of operations; the file is compiled with
// -ffp-contract=off, since a fused multiply-add would round differently from numpy. The one liberty
// is the sort of py1e. Positions are spread evenly over [0, n], so buckets of width one hold about
// one each and the sort is O(n). Equal positions keep their order, where upstream's sort is not
// stable; ties appear from about 10^8 samples per node on.

#include "loader/order/shuffle.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <utility>

#include "base/text/counted.h"
#include "loader/order/rng.h"

namespace tune::loader {
namespace {

using Ids = std::vector<std::int64_t>;

/// Samples begin..end-1.
struct Span {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    [[nodiscard]] std::int64_t size() const { return end - begin; }
};

/// Spans in order and, for each canonical node, which of them are its own.
struct DividedSpans {
    std::vector<Span> spans;
    std::vector<std::pair<std::size_t, std::size_t>> nodes;

    [[nodiscard]] std::span<Span> of_node(std::size_t node) {
        return std::span(spans).subspan(nodes[node].first, nodes[node].second - nodes[node].first);
    }
};

std::size_t index_of(std::int64_t value) {
    return static_cast<std::size_t>(value);
}

std::vector<Span> spans_of(const Ids& unit_sizes) {
    std::vector<Span> spans;
    spans.reserve(unit_sizes.size());
    std::int64_t begin = 0;
    for (const std::int64_t size : unit_sizes) {
        spans.push_back({begin, begin + size});
        begin += size;
    }
    return spans;
}

/// Gives each canonical node its share of the samples, cutting spans where shares meet.
DividedSpans divide(std::vector<Span> spans, std::int64_t sample_count, std::int64_t node_count) {
    DividedSpans divided;
    std::size_t next = 0;
    std::int64_t given = 0;
    for (std::int64_t node = 0; node < node_count; ++node) {
        const std::size_t first = divided.spans.size();
        const std::int64_t node_end = sample_count * (node + 1) / node_count;
        while (next < spans.size()) {
            Span& span = spans[next];
            if (node_end < given + span.size()) {
                if (given < node_end) {
                    const std::int64_t cut = span.begin + (node_end - given);
                    divided.spans.push_back({span.begin, cut});
                    span.begin = cut;
                    given = node_end;
                }
                break;
            }
            divided.spans.push_back(span);
            given += span.size();
            ++next;
        }
        divided.nodes.emplace_back(first, divided.spans.size());
    }
    return divided;
}

/// What py1s, py1br and py1e begin with: shards in the order of the run, divided among the
/// canonical nodes, in the order of the epoch within each.
DividedSpans shuffled_spans(const Ids& unit_sizes, std::int64_t sample_count,
                            const ShuffleOptions& options, Rng& epoch_rng) {
    std::vector<Span> spans = spans_of(unit_sizes);
    Rng run_rng(options.seed);
    run_rng.shuffle(std::span(spans));
    DividedSpans divided = divide(std::move(spans), sample_count, options.num_canonical_nodes);
    for (std::size_t node = 0; node < divided.nodes.size(); ++node)
        epoch_rng.shuffle(divided.of_node(node));
    return divided;
}

void append_range(Ids& ids, const Span& span) {
    for (std::int64_t id = span.begin; id < span.end; ++id) ids.push_back(id);
}

Ids shuffle_py1s(const Ids& unit_sizes, std::int64_t sample_count, const ShuffleOptions& options,
                 Rng& epoch_rng) {
    const DividedSpans divided = shuffled_spans(unit_sizes, sample_count, options, epoch_rng);
    Ids ids;
    ids.reserve(index_of(sample_count));
    for (const Span& span : divided.spans) {
        append_range(ids, span);
        epoch_rng.shuffle(std::span(ids).last(index_of(span.size())));
    }
    return ids;
}

Ids shuffle_py2s(const Ids& unit_sizes, std::int64_t sample_count, const ShuffleOptions& options,
                 Rng& epoch_rng) {
    // `ids` holds the units in the order of the run, each shuffled; spans then point into it.
    Rng run_rng(options.seed);
    std::vector<Span> units = spans_of(unit_sizes);
    run_rng.shuffle(std::span(units));
    Ids run_ids;
    run_ids.reserve(index_of(sample_count));
    Ids run_sizes;
    for (const Span& unit : units) {
        append_range(run_ids, unit);
        run_rng.shuffle(std::span(run_ids).last(index_of(unit.size())));
        run_sizes.push_back(unit.size());
    }
    DividedSpans divided = divide(spans_of(run_sizes), sample_count, options.num_canonical_nodes);
    Ids ids;
    ids.reserve(index_of(sample_count));
    for (std::size_t node = 0; node < divided.nodes.size(); ++node) {
        epoch_rng.shuffle(divided.of_node(node));
        for (const Span& span : divided.of_node(node)) {
            ids.insert(ids.end(), run_ids.begin() + span.begin, run_ids.begin() + span.end);
            epoch_rng.shuffle(std::span(ids).last(index_of(span.size())));
        }
    }
    return ids;
}

/// int(fraction * block_size) of Python: truncation of the product.
std::int64_t fraction_of(std::int64_t block_size, double fraction) {
    return static_cast<std::int64_t>(fraction * static_cast<double>(block_size));
}

std::int64_t random_block_size(Rng& rng, std::int64_t block_size) {
    return rng.integers(fraction_of(block_size, 0.75), fraction_of(block_size, 1.25));
}

Ids shuffle_py1br(const Ids& unit_sizes, std::int64_t sample_count, const ShuffleOptions& options,
                  Rng& epoch_rng) {
    DividedSpans divided = shuffled_spans(unit_sizes, sample_count, options, epoch_rng);
    std::vector<std::int64_t> staggers;
    for (std::size_t node = 0; node < divided.nodes.size(); ++node)
        staggers.push_back(epoch_rng.integers(0, fraction_of(options.block_size, 0.75)));

    Ids ids;
    ids.reserve(index_of(sample_count));
    for (std::size_t node = 0; node < divided.nodes.size(); ++node) {
        const auto start = static_cast<std::int64_t>(ids.size());
        for (const Span& span : divided.of_node(node)) append_range(ids, span);
        const auto stop = static_cast<std::int64_t>(ids.size());
        // Neighbouring blocks overlap: the stagger is taken off every block's begin, not only off
        // the first one's. This is what mosaicml-streaming does, so the order depends on it.
        std::vector<Span> blocks;
        std::int64_t blocks_end = start;
        while (blocks_end < stop) {
            const std::int64_t size = random_block_size(epoch_rng, options.block_size);
            const std::int64_t begin = std::max(blocks_end - staggers[node], start);
            const std::int64_t end = std::min(blocks_end + size - staggers[node], stop);
            blocks.push_back({begin, end});
            blocks_end += end - begin;
        }
        for (const Span& block : blocks)
            epoch_rng.shuffle(
                std::span(ids).subspan(index_of(block.begin), index_of(block.size())));
    }
    return ids;
}

/// Reorders `ids` by ascending `positions` (equal ones keep their order). Positions lie in
/// [0, ids.size()] and are spread evenly, so buckets of width one hold about one each: O(n).
void sort_by_position(std::span<std::int64_t> ids, const std::vector<double>& positions) {
    struct Placed {
        double position;
        std::int64_t id;
    };
    const auto bucket_of = [&](double position) {
        return std::min(static_cast<std::size_t>(std::max(position, 0.0)), ids.size() - 1);
    };
    std::vector<std::uint32_t> fill(ids.size() + 1, 0);
    for (const double position : positions) ++fill[bucket_of(position) + 1];
    std::partial_sum(fill.begin(), fill.end(), fill.begin());
    std::vector<Placed> placed(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i)
        placed[fill[bucket_of(positions[i])]++] = {positions[i], ids[i]};
    // After filling, fill[b] is the end of bucket b.
    std::size_t begin = 0;
    for (std::size_t bucket = 0; bucket < ids.size(); ++bucket) {
        const std::size_t end = fill[bucket];
        if (end - begin > 1)
            std::stable_sort(
                placed.begin() + static_cast<std::ptrdiff_t>(begin),
                placed.begin() + static_cast<std::ptrdiff_t>(end),
                [](const Placed& a, const Placed& b) { return a.position < b.position; });
        begin = end;
    }
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = placed[i].id;
}

/// Moves each position by a uniform shift, by at most half of a random block size either way and
/// never beyond the node's samples.
void shift_positions(std::span<const Span> spans, std::int64_t block_size, Rng& rng,
                     std::vector<double>& positions) {
    const auto node_count = static_cast<double>(positions.size());
    std::size_t offset = 0;
    for (const Span& span : spans) {
        const std::int64_t block = random_block_size(rng, block_size);
        const double cutoff = std::max(static_cast<double>(block - span.size()) / 2, 0.0);
        const double low = std::max(-cutoff, -static_cast<double>(offset));
        const double high = std::min(
            cutoff, node_count - static_cast<double>(offset) - static_cast<double>(span.size()));
        for (std::int64_t k = 0; k < span.size(); ++k, ++offset)
            positions[offset] = static_cast<double>(offset) + rng.uniform(low, high);
    }
}

Ids shuffle_py1e(const Ids& unit_sizes, std::int64_t sample_count, const ShuffleOptions& options,
                 Rng& epoch_rng) {
    DividedSpans divided = shuffled_spans(unit_sizes, sample_count, options, epoch_rng);
    Ids ids;
    ids.reserve(index_of(sample_count));
    std::vector<double> positions;
    for (std::size_t node = 0; node < divided.nodes.size(); ++node) {
        const std::size_t begin = ids.size();
        for (const Span& span : divided.of_node(node)) {
            append_range(ids, span);
            epoch_rng.shuffle(std::span(ids).last(index_of(span.size())));
        }
        positions.resize(ids.size() - begin);
        shift_positions(divided.of_node(node), options.block_size, epoch_rng, positions);
        sort_by_position(std::span(ids).subspan(begin), positions);
    }
    return ids;
}

Result<std::int64_t> count_samples(const Ids& unit_sizes) {
    // 2^40 ids would need 8 TiB: the limit only keeps sums from overflowing.
    constexpr std::int64_t kSamplesMax = std::int64_t{1} << 40;
    std::int64_t count = 0;
    for (const std::int64_t size : unit_sizes) {
        if (size <= 0 || size > kSamplesMax - count)
            return invalid_parameter("a shuffle unit has " + counted(size, "sample"));
        count += size;
    }
    return count;
}

constexpr std::array<std::pair<std::string_view, ShuffleAlgo>, 5> kAlgoNames = {{
    {"naive", ShuffleAlgo::kNaive},
    {"py1s", ShuffleAlgo::kPy1s},
    {"py2s", ShuffleAlgo::kPy2s},
    {"py1br", ShuffleAlgo::kPy1br},
    {"py1e", ShuffleAlgo::kPy1e},
}};

}  // namespace

std::string_view shuffle_algo_name(ShuffleAlgo algo) {
    for (const auto& [name, value] : kAlgoNames)
        if (value == algo) return name;
    return "unknown";
}

std::optional<ShuffleAlgo> shuffle_algo_from_name(std::string_view name) {
    for (const auto& [known, value] : kAlgoNames)
        if (known == name) return value;
    return std::nullopt;
}

Result<void> check_shuffle(std::int64_t sample_count, const ShuffleOptions& options) {
    const std::int64_t nodes = options.num_canonical_nodes;
    if (options.epoch < 0) return invalid_parameter("the epoch is negative");
    if (options.seed > (std::uint64_t{1} << 62))
        return invalid_parameter("the shuffle seed is larger than 2^62");
    if (nodes <= 0 || nodes > (1 << 20))
        return invalid_parameter("the number of canonical nodes must lie in 1..1,048,576, it is " +
                                 std::to_string(nodes));
    const bool has_blocks =
        options.algo == ShuffleAlgo::kPy1br || options.algo == ShuffleAlgo::kPy1e;
    // Three quarters of a py1br block must be a sample; py1e moves nothing in a block of one.
    const std::int64_t block_min = options.algo == ShuffleAlgo::kPy1e ? 1 : 2;
    if (has_blocks &&
        (options.block_size < block_min || options.block_size > (std::int64_t{1} << 50)))
        return invalid_parameter("the shuffle block size must be at least " +
                                 counted(block_min, "sample") + ", it is " +
                                 std::to_string(options.block_size));
    if (options.algo != ShuffleAlgo::kPy1e) return {};
    if (sample_count < nodes)
        return invalid_parameter("shuffle py1e needs at least one sample for each of the " +
                                 std::to_string(nodes) + " canonical nodes, there are " +
                                 std::to_string(sample_count));
    if (sample_count / nodes >= std::int64_t{0xffffffff})
        return invalid_parameter("shuffle py1e orders at most 2^32 samples a canonical node");
    return {};
}

Result<Ids> shuffle_samples(const Ids& unit_sizes, const ShuffleOptions& options) {
    TUNE_TRY(sample_count, count_samples(unit_sizes));
    TUNE_TRY_VOID(check_shuffle(sample_count, options));
    Rng epoch_rng(options.seed + static_cast<std::uint64_t>(options.epoch));
    switch (options.algo) {
        case ShuffleAlgo::kNaive: return epoch_rng.permutation(sample_count);
        case ShuffleAlgo::kPy1s: return shuffle_py1s(unit_sizes, sample_count, options, epoch_rng);
        case ShuffleAlgo::kPy2s: return shuffle_py2s(unit_sizes, sample_count, options, epoch_rng);
        case ShuffleAlgo::kPy1br:
            return shuffle_py1br(unit_sizes, sample_count, options, epoch_rng);
        case ShuffleAlgo::kPy1e: return shuffle_py1e(unit_sizes, sample_count, options, epoch_rng);
    }
    return Error{Code::kInvalidParameterValue, "unknown shuffle algorithm"};
}

}  // namespace tune::loader
