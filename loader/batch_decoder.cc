#include "loader/batch_decoder.h"

namespace tune::loader {

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

}  // namespace tune::loader
