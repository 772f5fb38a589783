#include "loader/batch_decoder.h"

namespace tune::loader {
namespace {

constexpr std::size_t kLooksPerShard = 8;
constexpr std::size_t kLooksMax = 256;

}  // namespace

ShardMap::ShardMap(std::span<const std::int64_t> shard_samples) {
    std::int64_t begin = 0;
    for (const std::int64_t samples : shard_samples) {
        begins_.push_back(begin);
        begin += samples;
    }
    begins_.push_back(begin);
    std::uint32_t shard = 0;
    for (std::int64_t id = 0; id < begin; id += std::int64_t{1} << kBucketShift) {
        while (begins_[shard + 1] <= id) ++shard;
        bucket_shards_.push_back(shard);
    }
}

ShardMap::Place ShardMap::find(std::int64_t id) const {
    std::size_t shard = bucket_shards_[static_cast<std::size_t>(id >> kBucketShift)];
    while (begins_[shard + 1] <= id) ++shard;
    return {shard, static_cast<std::size_t>(id - begins_[shard])};
}

ShardLookout::ShardLookout(const ShardMap& map, std::size_t shard_count, std::int64_t sample_count)
    : map_(map),
      shard_count_(shard_count),
      stride_(1 + static_cast<std::size_t>(sample_count) / (kLooksPerShard * shard_count)) {}

std::vector<std::size_t> ShardLookout::find(const EpochPlan::Rest& upcoming,
                                            const EpochPlan::Rest& next_epoch) const {
    std::vector<std::size_t> shards;
    std::vector<bool> is_found(shard_count_);
    std::size_t looks = 0;
    for (const EpochPlan::Rest& ids : {upcoming, next_epoch})
        for (std::size_t i = 0; i < ids.size() && looks < kLooksMax; i += stride_, ++looks) {
            const std::int64_t id = ids[i];
            if (id < 0) continue;
            const std::size_t shard = map_.find(id).shard;
            if (is_found[shard]) continue;
            is_found[shard] = true;
            shards.push_back(shard);
        }
    return shards;
}

}  // namespace tune::loader
