// Several data sets become one: their shards are numbered through, and an epoch's samples are
// shared among them by their weights, as mosaicml-streaming does. The digest is of the indexes as
// they are stored, so that it does not depend on where the data lies.

#include "loader/stream_set.h"

#include <algorithm>
#include <utility>

#include "loader/cache/remote_set.h"
#include "loader/format/compression.h"

namespace tune::loader {
namespace {

/// All shards must have the columns of the first one, and be readable by this build.
Result<void> check_shards(const Index& index, const ShardInfo& first) {
    if (index.shards.empty() || index.sample_count() == 0)
        return invalid_parameter("the data set has no samples");
    for (const ShardInfo& shard : index.shards) {
        if (shard.column_names != first.column_names ||
            shard.column_encodings != first.column_encodings)
            return Error{Code::kDataLoss, "shard '" + shard.raw_data.basename +
                                              "' has other columns than the first shard"};
        if (!shard.compression.empty()) TUNE_TRY_VOID(parse_compression(shard.compression));
    }
    return {};
}

/// `place`: of the index, for the message.
Result<void> check_index(const Index& index, const ShardInfo* first, std::string place) {
    const ShardInfo none;
    const ShardInfo& model = first ? *first : index.shards.empty() ? none : index.shards.front();
    Result<void> checked = check_shards(index, model);
    if (checked) return checked;
    Error error = std::move(checked).error();
    error.context = std::move(place);
    return error;
}

std::vector<std::int64_t> samples_of(const Index& index) {
    std::vector<std::int64_t> samples;
    for (const ShardInfo& shard : index.shards) samples.push_back(shard.samples);
    return samples;
}

Result<void> share_epoch(const std::vector<StreamOptions>& options, std::int64_t epoch_size,
                         std::uint64_t seed, std::vector<Stream>& streams) {
    std::vector<std::int64_t> samples;
    std::vector<StreamWeight> weights;
    for (std::size_t i = 0; i < streams.size(); ++i) {
        std::int64_t count = 0;
        for (const std::int64_t of_shard : streams[i].shard_samples) count += of_shard;
        samples.push_back(count);
        weights.push_back(options[i].weight);
    }
    TUNE_TRY(shares, stream_shares(samples, weights, epoch_size, seed));
    std::int64_t total = 0;
    for (std::size_t i = 0; i < streams.size(); ++i) {
        streams[i].choose = shares[i].choose;
        streams[i].proportion = shares[i].proportion;
        total += shares[i].choose;
    }
    if (total == 0) return invalid_parameter("the streams' weights leave no sample in an epoch");
    return {};
}

/// Streams that are read through caches.
Result<StreamSet> open_cached(const std::vector<StreamOptions>& places,
                              const DatasetOptions& options) {
    TUNE_TRY(remote, open_remote(places, options));
    StreamSet set;
    std::size_t first = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
        Index part;
        const auto begin = remote.index.shards.begin() + static_cast<std::ptrdiff_t>(first);
        part.shards.assign(begin, begin + static_cast<std::ptrdiff_t>(remote.shard_counts[i]));
        TUNE_TRY_VOID(check_index(part, first == 0 ? nullptr : &remote.index.shards.front(),
                                  places[i].remote));
        set.streams.push_back({samples_of(part)});
        first += remote.shard_counts[i];
    }
    set.index = std::move(remote.index);
    set.store = std::move(remote.store);
    set.supply = std::move(remote.supply);
    set.files = std::move(remote.files);
    return set;
}

/// Streams of this machine.
Result<StreamSet> open_here(const std::vector<StreamOptions>& places) {
    StreamSet set;
    for (const StreamOptions& place : places) {
        const std::filesystem::path directory = plain_directory(place);
        TUNE_TRY(index, read_index(directory));
        const ShardInfo* first = set.index.shards.empty() ? nullptr : &set.index.shards.front();
        TUNE_TRY_VOID(check_index(index, first, (directory / "index.json").string()));
        set.streams.push_back({samples_of(index)});
        for (ShardInfo& shard : index.shards) set.index.shards.push_back(std::move(shard));
    }
    return set;
}

/// Makes the names of files lead from the root of the file system to each stream's own.
void name_from_root(const std::vector<StreamOptions>& places, StreamSet& set) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
        const std::filesystem::path place =
            std::filesystem::absolute(plain_directory(places[i])).relative_path();
        for (std::size_t s = 0; s < set.streams[i].shard_samples.size(); ++s, ++next) {
            ShardInfo& shard = set.index.shards[next];
            shard.raw_data.basename = (place / shard.raw_data.basename).string();
            if (shard.zip_data)
                shard.zip_data->basename = (place / shard.zip_data->basename).string();
        }
    }
}

}  // namespace

Result<StreamSet> open_streams(const DatasetOptions& options) {
    const bool has_place =
        !options.directory.empty() || !options.remote.empty() || !options.local.empty();
    if (!options.streams.empty() && has_place)
        return invalid_parameter("a data set is read from one place or from streams, not both");
    std::vector<StreamOptions> places = options.streams;
    if (places.empty()) places.push_back(only_place(options));
    const auto cached_count = std::count_if(places.begin(), places.end(), is_cached);
    const bool are_cached = cached_count > 0;
    if (are_cached && static_cast<std::size_t>(cached_count) < places.size())
        return invalid_parameter(
            "streams of this machine and of others are mixed: give those of this machine a `local` "
            "too, or copy the others");
    TUNE_TRY(set, are_cached ? open_cached(places, options) : open_here(places));
    TUNE_TRY_VOID(share_epoch(places, options.epoch_size, options.seed, set.streams));
    set.digest = index_digest(set.index);
    if (are_cached) return set;
    set.directory = places.size() == 1 ? plain_directory(places.front()) : "/";
    if (places.size() > 1) name_from_root(places, set);
    return set;
}

}  // namespace tune::loader
