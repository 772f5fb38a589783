#include "loader/cache/supply/sample_ranges.h"

#include <algorithm>
#include <iterator>

namespace tune::loader {

bool SampleRanges::is_possible() const {
    return std::ranges::none_of(store_->index().shards,
                                [](const ShardInfo& shard) { return shard.zip_data.has_value(); });
}

Result<std::vector<SampleRanges::Need>> SampleRanges::prepare(const BatchNeeds::ByGroup& samples) {
    std::vector<Need> needs;
    for (const auto& [shard, wanted] : samples) {
        std::shared_ptr<SparseShard>& sparse = shards_[shard];
        if (!sparse) {
            Result<std::shared_ptr<SparseShard>> made =
                SparseShard::make(store_->index().shards[shard]);
            if (!made) return std::move(made).error();
            sparse = *std::move(made);
        }
        needs.push_back({shard, sparse, wanted});
    }
    return needs;
}

Result<std::uint64_t> SampleRanges::fetch(const std::vector<Need>& needs,
                                          RangeReader& reader) const {
    std::vector<RangeReader::Job> offsets;
    for (const Need& need : needs)
        std::ranges::move(need.sparse->offset_requests(source_of_(need.shard), need.samples),
                          std::back_inserter(offsets));
    std::uint64_t bytes = 2 * sizeof(std::uint32_t) * offsets.size();
    TUNE_TRY_VOID(reader.run(std::move(offsets), RangeReader::Kind::kSample));
    std::vector<RangeReader::Job> jobs;
    for (const Need& need : needs) {
        TUNE_TRY(requests,
                 need.sparse->sample_requests(source_of_(need.shard), need.samples, bytes));
        std::ranges::move(requests, std::back_inserter(jobs));
    }
    TUNE_TRY_VOID(reader.run(std::move(jobs), RangeReader::Kind::kSample));
    return bytes;
}

}  // namespace tune::loader
