// The bytes' side of the supply. Each thread does the most urgent of: samples of the first batches
// by themselves, shards that may be in the cache, shards that another process was fetching, shards
// to fetch. A claim is asked for without waiting; when another process holds it, a thread of
// its own waits in the kernel for that, and the others go on.

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>
#include <new>

#include "base/system/thread.h"
#include "loader/cache/shard_supply.h"
#include "loader/format/hash.h"
#include "loader/source/mapped_file.h"

namespace tune::loader {
namespace {

/// Other files that are evicted for one for which the disk has no room.
constexpr int kEvictionsForRoom = 64;
/// Downloads of a shard whose bytes are not those that the index states.
constexpr int kDownloadsOfDamaged = 2;

/// Lets pthread_cancel end the calling thread while it lives.
class Cancellable {
public:
    Cancellable() { ::pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr); }
    ~Cancellable() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr); }
    Cancellable(const Cancellable&) = delete;
    Cancellable& operator=(const Cancellable&) = delete;
};

Error with_shard(Error error, const SupplyPart& part, const FileInfo& file) {
    if (error.context.empty())
        error.context = "shard '" + part.source->url() + "/" + file.basename + "'";
    return error;
}

/// The xxh3_64 of bytes that were compared with the index: where it states that one, nothing is
/// left to compute.
std::uint64_t checked_hash(const FileInfo& file, std::span<const std::byte> bytes) {
    const auto stated = file.hashes.find("xxh3_64");
    std::uint64_t hash = 0;
    if (stated == file.hashes.end()) return xxh3_64(bytes);
    const std::string& hex = stated->second;
    std::from_chars(hex.data(), hex.data() + hex.size(), hash, 16);
    return hash;
}

Result<void> write_part(int fd, std::span<const std::byte> bytes) {
    std::size_t at = 0;
    while (at < bytes.size()) {
        const ssize_t count =
            ::pwrite(fd, bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0)
            return Error{errno == ENOSPC || errno == EDQUOT || errno == EFBIG
                             ? Code::kResourceExhausted
                             : Code::kInternalError,
                         std::string("cannot write to the cache: ") + std::strerror(errno)};
        at += static_cast<std::size_t>(count);
    }
    return {};
}

}  // namespace

void ShardSupply::work() {
    name_thread("tune-fetch");
    std::unique_lock lock(mutex_);
    while (!is_stopping_)
        if (!work_once(lock)) work_.wait(lock);
}

/// Does one thing; false when there is nothing to do.
bool ShardSupply::work_once(std::unique_lock<std::mutex>& lock) {
    if (const std::optional<std::uint64_t> batch = take_range()) {
        range(*batch, lock);
        return true;
    }
    if (!queued_.empty()) {
        const std::size_t shard = queued_.begin()->second;
        queued_.erase(queued_.begin());
        shards_[shard].stage = Stage::kLooking;
        probe(shard, lock);
        return true;
    }
    if (!claimed_.empty()) {
        const std::size_t shard = claimed_.front();
        claimed_.pop_front();
        lock.unlock();
        Result<Outcome> outcome = fetch_claimed(shard);
        lock.lock();
        settle(shard, std::move(outcome), lock);
        return true;
    }
    if (holds_downloads_ || absent_.empty()) return false;
    const std::size_t shard = absent_.begin()->second;
    absent_.erase(absent_.begin());
    shards_[shard].stage = Stage::kBusy;
    fetch(shard, lock);
    return true;
}

/// Whether the batch waits for nothing but shards that are far away.
bool ShardSupply::can_range(std::uint64_t batch) const {
    if (walked_ <= batch || ranged_.contains(batch)) return false;
    std::vector<std::int64_t> scratch;
    bool is_any = false;
    for (const std::int64_t id : ids_of(batch, scratch)) {
        switch (shards_[shard_of(id)].stage) {
            case Stage::kReady:
            case Stage::kInMemory: break;
            case Stage::kNoRoom: is_any = true; break;
            case Stage::kAbsent:
            case Stage::kBusy:
                if (is_warm_) return false;
                is_any = true;
                break;
            default: return false;  // it is being looked for, or failed
        }
    }
    return is_any;
}

std::optional<std::uint64_t> ShardSupply::take_range() {
    if (!can_range_ || is_ranging_ || (is_warm_ && pending_ == 0)) return {};
    for (const std::uint64_t batch : open_)
        if (can_range(batch)) return batch;
    return {};
}

Result<void> ShardSupply::fetch_ranges(const std::vector<RangeNeed>& needs) {
    std::vector<RangeReader::Job> offsets;
    for (const RangeNeed& need : needs)
        std::ranges::move(need.sparse->offset_requests(*part_of(need.shard).source, need.samples),
                          std::back_inserter(offsets));
    std::uint64_t bytes = 2 * sizeof(std::uint32_t) * offsets.size();
    TUNE_TRY_VOID(reader_.run(std::move(offsets), RangeReader::Kind::kSample));
    std::vector<RangeReader::Job> jobs;
    for (const RangeNeed& need : needs) {
        TUNE_TRY(requests,
                 need.sparse->sample_requests(*part_of(need.shard).source, need.samples, bytes));
        std::ranges::move(requests, std::back_inserter(jobs));
    }
    TUNE_TRY_VOID(reader_.run(std::move(jobs), RangeReader::Kind::kSample));
    const std::lock_guard lock(mutex_);
    stats_.bytes += bytes;
    ++stats_.ranged_batches;
    return {};
}

/// Reads the samples of one batch. One batch at a time: a later one may want the same samples.
void ShardSupply::range(std::uint64_t batch, std::unique_lock<std::mutex>& lock) {
    is_ranging_ = true;
    Result<void> fetched;
    std::vector<RangeNeed> needs;
    for (auto& [shard, samples] : needs_of(batch)) {
        ShardState& state = shards_[shard];
        if (state.stage == Stage::kReady || state.stage == Stage::kInMemory) continue;
        if (!state.sparse) {
            Result<std::shared_ptr<SparseShard>> made =
                SparseShard::make(store_->index().shards[shard]);
            if (made)
                state.sparse = *std::move(made);
            else
                fetched = std::move(made).error();
        }
        if (state.sparse) needs.push_back({shard, state.sparse, std::move(samples)});
    }
    lock.unlock();
    if (fetched) fetched = fetch_ranges(needs);
    lock.lock();
    is_ranging_ = false;
    holds_downloads_ = false;
    if (fetched) {
        for (const RangeNeed& need : needs) {
            const Stage stage = shards_[need.shard].stage;
            if (stage != Stage::kReady && stage != Stage::kInMemory)
                store_->put(need.shard, need.sparse->shard(), false);
        }
        if (open_.contains(batch)) ranged_.insert(batch);
    } else {
        // Whatever the reason, the shards themselves come to the same end, and say so.
        can_range_ = false;
        for (const RangeNeed& need : needs) shards_[need.shard].sparse.reset();
        retry_without_room(next_base_);
    }
    tell(lock);
}

/// Looks for the shard in the cache.
void ShardSupply::probe(std::size_t shard, std::unique_lock<std::mutex>& lock) {
    DiskCache& cache = *part_of(shard).cache;
    const std::size_t file = file_of(shard);
    lock.unlock();
    Result<ShardPtr> opened = ShardPtr();
    if (cache.is_present(file) && cache.try_claim(file)) {
        if (cache.check(file)) opened = open_pinned(shard);
        cache.unclaim(file);
    }
    lock.lock();
    if (!opened) return settle(shard, std::move(opened).error(), lock);
    if (*opened) return settle(shard, Outcome{Stage::kReady, *std::move(opened)}, lock);
    want(shard, Stage::kAbsent);
    tell(lock);  // a batch that waits for this one may now be read sample by sample
}

void ShardSupply::fetch(std::size_t shard, std::unique_lock<std::mutex>& lock) {
    if (!part_of(shard).cache->try_claim(file_of(shard))) {
        wait_elsewhere(shard);
        return;
    }
    lock.unlock();
    Result<Outcome> outcome = fetch_claimed(shard);
    lock.lock();
    settle(shard, std::move(outcome), lock);
}

/// Maps and pins what the cache holds; nullptr when it holds it no more.
Result<ShardSupply::ShardPtr> ShardSupply::open_pinned(std::size_t shard) {
    DiskCache& cache = *part_of(shard).cache;
    const std::size_t file = file_of(shard);
    if (!cache.pin(file)) return ShardPtr();
    Result<ShardPtr> opened = store_->map_file(shard, cache.path(file));
    if (opened) return opened;
    cache.unpin(file);
    return with_shard(std::move(opened).error(), part_of(shard),
                      store_->index().shards[shard].raw_data);
}

/// REQUIRES: the shard is claimed. It is not, afterwards.
Result<ShardSupply::Outcome> ShardSupply::fetch_claimed(std::size_t shard) {
    const SupplyPart& part = part_of(shard);
    DiskCache& cache = *part.cache;
    const std::size_t file = file_of(shard);
    const auto fetched = [&]() -> Result<Outcome> {
        if (cache.check(file)) {
            TUNE_TRY(opened, open_pinned(shard));
            if (opened) return Outcome{Stage::kReady, std::move(opened)};
        }
        if (!cache.reserve(file, [&] { return victims(part); })) return without_room(shard);
        Result<std::uint64_t> hash = download(shard);
        for (int i = 0; !hash && hash.error().code == Code::kResourceExhausted; ++i) {
            if (i == kEvictionsForRoom || !cache.evict_one([&] { return victims(part); })) {
                cache.abandon(file);
                return without_room(shard);
            }
            hash = download(shard);
        }
        if (!hash) return std::move(hash).error();
        TUNE_TRY_VOID(cache.commit(file, *hash));
        count_shard(shard);
        TUNE_TRY(opened, open_pinned(shard));
        // Evicted in this very moment: another process has better use for the room.
        if (!opened) return without_room(shard);
        return Outcome{Stage::kReady, std::move(opened)};
    };
    Result<Outcome> outcome = fetched();
    if (!outcome) cache.abandon(file);
    cache.unclaim(file);
    if (outcome) return outcome;
    const ShardInfo& info = store_->index().shards[shard];
    return with_shard(std::move(outcome).error(), part,
                      info.zip_data ? *info.zip_data : info.raw_data);
}

/// What is done with a shard that the cache cannot take: raw ones are read sample by sample where
/// they are needed; others, in memory as soon as a batch waits for them.
Result<ShardSupply::Outcome> ShardSupply::without_room(std::size_t shard) {
    {
        const std::lock_guard lock(mutex_);
        if (can_range_ || shards_[shard].first_batch >= next_batch_)
            return Outcome{Stage::kNoRoom, nullptr};
    }
    TUNE_TRY(stored, read_stored(shard));
    TUNE_TRY(raw, store_->unpack(shard, std::move(stored)));
    TUNE_TRY(view, store_->view(shard, std::move(raw)));
    count_shard(shard);
    return Outcome{Stage::kInMemory, std::move(view)};
}

/// What to ask the source for. Without hashes, a file that is replaced while its ranges are read
/// shows by its version only, which costs a request.
ObjectInfo ShardSupply::stored_object(std::size_t shard) const {
    const ShardInfo& info = store_->index().shards[shard];
    const FileInfo& file = info.zip_data ? *info.zip_data : info.raw_data;
    ObjectInfo object{file.basename, file.bytes, ""};
    if (!file.hashes.empty() || file.bytes <= RangeReader::kRangeBytes) return object;
    if (const Result<ObjectInfo> found = part_of(shard).source->stat(file.basename);
        found && found->bytes == file.bytes)
        object.version = found->version;
    return object;
}

Result<OwnedBytes> ShardSupply::read_stored(std::size_t shard) {
    const ObjectInfo object = stored_object(shard);
    OwnedBytes bytes;
    bytes.size = object.bytes;
    bytes.data.reset(new (std::nothrow) std::byte[std::max<std::size_t>(bytes.size, 1)]);
    if (!bytes.data)
        return Error{Code::kDataLoss, "no memory for its " + std::to_string(bytes.size) + " bytes"};
    TUNE_TRY_VOID(
        reader_.to_memory(*part_of(shard).source, object, {bytes.data.get(), bytes.size}));
    return bytes;
}

/// Leaves the parts of the shard checked, not yet visible; returns the raw file's xxh3.
Result<std::uint64_t> ShardSupply::download(std::size_t shard) {
    const bool is_zip = store_->index().shards[shard].zip_data.has_value();
    for (int i = 1;; ++i) {
        Result<std::uint64_t> hash = is_zip ? download_zip(shard) : download_raw(shard);
        const bool is_damaged = !hash && hash.error().code == Code::kDataLoss;
        if (!is_damaged || i == kDownloadsOfDamaged) return hash;
    }
}

Result<std::uint64_t> ShardSupply::download_raw(std::size_t shard) {
    const SupplyPart& part = part_of(shard);
    const FileInfo& info = store_->index().shards[shard].raw_data;
    TUNE_TRY(fd, part.cache->open_part(file_of(shard), false, info.bytes));
    const ObjectInfo object = stored_object(shard);
    TUNE_TRY_VOID(reader_.to_file(*part.source, object, fd.get()));
    TUNE_TRY(mapped, MappedFile::open(part.cache->part_path(file_of(shard), false)));
    TUNE_TRY_VOID(check_file(mapped->bytes(), info, true));
    return checked_hash(info, mapped->bytes());
}

Result<std::uint64_t> ShardSupply::download_zip(std::size_t shard) {
    DiskCache& cache = *part_of(shard).cache;
    const ShardInfo& info = store_->index().shards[shard];
    TUNE_TRY(stored, read_stored(shard));
    if (options_.keep_zip) {
        TUNE_TRY(zip, cache.open_part(file_of(shard), true, info.zip_data->bytes));
        TUNE_TRY_VOID(write_part(zip.get(), stored.bytes()));
    }
    TUNE_TRY(raw, store_->unpack(shard, std::move(stored)));
    TUNE_TRY(fd, cache.open_part(file_of(shard), false, info.raw_data.bytes));
    TUNE_TRY_VOID(write_part(fd.get(), raw.bytes()));
    return checked_hash(info.raw_data, raw.bytes());
}

void ShardSupply::count_shard(std::size_t shard) {
    const ShardInfo& info = store_->index().shards[shard];
    const std::lock_guard lock(mutex_);
    stats_.bytes += info.zip_data ? info.zip_data->bytes : info.raw_data.bytes;
    ++stats_.shards;
}

/// What came of fetching a shard. REQUIRES: it is kBusy or kLooking.
void ShardSupply::settle(std::size_t shard, Result<Outcome> outcome,
                         std::unique_lock<std::mutex>& lock) {
    ShardState& state = shards_[shard];
    if (!outcome) {
        store_->fail(shard, outcome.error());
        holds_downloads_ = false;  // the first batch will not come, and must say so
        state.stage = Stage::kFailed;
    } else {
        state.stage = outcome->stage;
        // Only now, so that nothing can come between this and what reads samples one by one.
        if (outcome->shard)
            store_->put(shard, std::move(outcome->shard), state.stage == Stage::kReady);
    }
    if (state.stage != Stage::kNoRoom) {
        --pending_;
        state.sparse.reset();
    } else {
        no_room_.insert(shard);
        if (!can_range_) retry_without_room(next_batch_);  // a batch waits for it since
    }
    tell(lock);
}

/// Waits for shards that other processes fetch, one after the other.
void ShardSupply::wait_for_claims() {
    ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    name_thread("tune-claims");
    std::unique_lock lock(mutex_);
    while (true) {
        ++idle_waiters_;
        elsewhere_changed_.wait(lock, [this] { return is_stopping_ || !elsewhere_.empty(); });
        --idle_waiters_;
        if (is_stopping_) return;
        const std::size_t shard = elsewhere_.front();
        elsewhere_.pop_front();
        lock.unlock();
        {
            const Cancellable cancellable;
            part_of(shard).cache->wait_claim(file_of(shard));
        }
        lock.lock();
        claimed_.push_back(shard);
        ++stats_.waited_shards;
        work_.notify_one();
    }
}

}  // namespace tune::loader
