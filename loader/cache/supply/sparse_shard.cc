// A batch of a set that lies afar begins with nothing here. Fetching whole shards for it would move
// gigabytes when the samples are spread over many; so the first batches fetch their samples alone.
// Neighbouring samples are one request when what lies between them is shorter than they are: at
// most twice the samples' bytes are then fetched.

#include "loader/cache/supply/sparse_shard.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace tune::loader {
namespace {

constexpr std::uint64_t kOffsetBytes = sizeof(std::uint32_t);

/// Where entry `i` of the offset table stands in the file.
std::uint64_t entry_place(std::uint64_t entry) {
    return kOffsetBytes * (entry + 1);
}

}  // namespace

Result<std::shared_ptr<SparseShard>> SparseShard::make(const ShardInfo& info) {
    const SampleLayout layout(info.column_sizes);
    const auto count = static_cast<std::uint64_t>(info.samples);
    if (entry_place(count + 1) + count * layout.bytes_min() > info.raw_data.bytes)
        return Error{Code::kDataLoss, "its samples are larger than it is",
                     "shard '" + info.raw_data.basename + "'"};
    void* const address = ::mmap(nullptr, info.raw_data.bytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED)
        return Error{Code::kResourceExhausted, "no address space for a shard of " +
                                                   std::to_string(info.raw_data.bytes) + " bytes"};
    return std::shared_ptr<SparseShard>(
        new SparseShard(info, {static_cast<std::byte*>(address), info.raw_data.bytes}));
}

SparseShard::SparseShard(const ShardInfo& info, std::span<std::byte> memory)
    : info_(info),
      object_{info.raw_data.basename, info.raw_data.bytes, ""},
      layout_(info.column_sizes),
      memory_(memory),
      has_offset_(static_cast<std::size_t>(info.samples) + 1),
      has_sample_(static_cast<std::size_t>(info.samples)) {
    const auto count = static_cast<std::uint32_t>(info.samples);
    std::memcpy(memory_.data(), &count, sizeof count);
}

SparseShard::~SparseShard() {
    ::munmap(memory_.data(), memory_.size());
}

std::shared_ptr<const Shard> SparseShard::shard() {
    return std::make_shared<const Shard>(
        Shard::unchecked(memory_, shared_from_this(), static_cast<std::size_t>(info_.samples)));
}

std::uint32_t SparseShard::offset(std::uint64_t entry) const {
    std::uint32_t value = 0;
    std::memcpy(&value, memory_.data() + entry_place(entry), sizeof value);
    return value;
}

/// REQUIRES: mutex_. Written once: readers of the sample before it read it too.
void SparseShard::set_offset(std::uint64_t entry, std::uint32_t value) {
    if (has_offset_[entry]) return;
    std::memcpy(memory_.data() + entry_place(entry), &value, sizeof value);
    has_offset_[entry] = true;
}

std::vector<RangeReader::Job> SparseShard::offset_requests(
    const ObjectSource& source, const std::vector<std::uint32_t>& samples) {
    std::vector<RangeReader::Job> jobs;
    const std::lock_guard lock(mutex_);
    if (layout_.is_fixed()) {
        // The samples end where the file does.
        const std::uint64_t first =
            memory_.size() - layout_.bytes_min() * static_cast<std::uint64_t>(info_.samples);
        for (const std::uint32_t sample : samples)
            for (const std::uint64_t entry : {std::uint64_t{sample}, sample + std::uint64_t{1}})
                set_offset(entry, static_cast<std::uint32_t>(first + entry * layout_.bytes_min()));
        return jobs;
    }
    for (const std::uint32_t sample : samples) {
        if (has_offset_[sample] && has_offset_[sample + 1]) continue;
        jobs.push_back([self = shared_from_this(), &source, sample]() -> Result<void> {
            std::uint32_t pair[2];
            TUNE_TRY_VOID(source.read(self->object_, entry_place(sample),
                                      std::as_writable_bytes(std::span(pair))));
            const std::lock_guard guard(self->mutex_);
            for (const std::size_t i : {0u, 1u}) self->set_offset(sample + i, pair[i]);
            return {};
        });
    }
    return jobs;
}

/// REQUIRES: mutex_, and the samples' offsets.
Result<std::vector<SparseShard::Range>> SparseShard::places(
    const std::vector<std::uint32_t>& samples) const {
    const std::uint64_t header = entry_place(static_cast<std::uint64_t>(info_.samples) + 1);
    std::vector<Range> ranges;
    for (const std::uint32_t sample : samples) {
        const Range range{offset(sample), offset(sample + 1)};
        if (range.begin == range.end) continue;
        if (range.begin < header || range.begin > range.end || range.end > memory_.size())
            return Error{Code::kDataLoss,
                         "the offset of sample " + std::to_string(sample) + " is out of order",
                         "shard '" + info_.raw_data.basename + "'"};
        const bool is_near = !ranges.empty() && range.begin >= ranges.back().end &&
                             range.begin - ranges.back().end <= (range.end - range.begin) / 2 &&
                             range.end - ranges.back().begin <= RangeReader::kRangeBytes;
        if (is_near)
            ranges.back().end = range.end;
        else
            ranges.push_back(range);
    }
    return ranges;
}

Result<std::vector<RangeReader::Job>> SparseShard::sample_requests(
    const ObjectSource& source, std::vector<std::uint32_t> samples, std::uint64_t& bytes) {
    std::sort(samples.begin(), samples.end());
    samples.erase(std::unique(samples.begin(), samples.end()), samples.end());
    const std::lock_guard lock(mutex_);
    std::erase_if(samples, [this](std::uint32_t sample) { return has_sample_[sample]; });
    TUNE_TRY(ranges, places(samples));
    for (const std::uint32_t sample : samples) has_sample_[sample] = true;
    std::vector<RangeReader::Job> jobs;
    for (const Range range : ranges) {
        bytes += range.end - range.begin;
        jobs.push_back([self = shared_from_this(), &source, range] {
            return source.read(self->object_, range.begin,
                               self->memory_.subspan(range.begin, range.end - range.begin));
        });
    }
    return jobs;
}

}  // namespace tune::loader
