#include "loader/format/mds/shard.h"
#include "base/text/counted.h"

namespace tune::loader {
namespace {

std::uint32_t read_u32(const std::byte* bytes) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes, sizeof value);
    return value;
}

}  // namespace

SampleLayout::SampleLayout(const std::vector<std::optional<std::uint32_t>>& column_sizes)
    : sizes_(column_sizes) {
    for (const std::optional<std::uint32_t>& size : sizes_)
        if (!size) ++variable_count_;
    bytes_min_ = 4 * variable_count_;
    for (const std::optional<std::uint32_t>& size : sizes_) {
        offsets_.push_back(bytes_min_);
        bytes_min_ += size.value_or(0);
    }
}

bool SampleLayout::split(std::span<const std::byte> sample,
                         std::span<std::span<const std::byte>> payloads) const {
    if (sample.size() < bytes_min_) return false;
    const std::byte* size_at = sample.data();
    std::size_t at = 4 * variable_count_;
    for (std::size_t column = 0; column < sizes_.size(); ++column) {
        std::size_t size = sizes_[column].value_or(0);
        if (!sizes_[column]) {
            size = read_u32(size_at);
            size_at += 4;
        }
        if (size > sample.size() - at) return false;
        payloads[column] = sample.subspan(at, size);
        at += size;
    }
    return at == sample.size();
}

Result<Shard> Shard::make(std::span<const std::byte> file, std::shared_ptr<const void> owner,
                          const ShardInfo& info) {
    if (file.size() != info.raw_data.bytes)
        return data_loss("it has " + std::to_string(file.size()) + " bytes, the index states " +
                         std::to_string(info.raw_data.bytes));
    if (file.size() < 8) return data_loss("it is too short to be a shard");
    Shard shard;
    shard.file_ = file;
    shard.owner_ = std::move(owner);
    shard.count_ = read_u32(file.data());
    if (shard.count_ != static_cast<std::uint64_t>(info.samples))
        return data_loss("its header states " +
                         counted(static_cast<std::int64_t>(shard.count_), "sample") +
                         ", the index " + std::to_string(info.samples));
    const std::uint64_t header = 4 + 4 * (std::uint64_t{shard.count_} + 1);
    if (header > file.size()) return data_loss("it is too short for its offsets");
    std::uint64_t previous = header;
    for (std::size_t i = 0; i <= shard.count_; ++i) {
        const std::uint32_t offset = read_u32(shard.offset_of(i));
        if (offset < previous || offset > file.size())
            return data_loss("the offset of sample " + std::to_string(i) + " (" +
                             std::to_string(offset) + ") is out of order");
        previous = offset;
    }
    if (previous != file.size())
        return data_loss("its last sample ends at byte " + std::to_string(previous) + " of " +
                         std::to_string(file.size()));
    return shard;
}

Shard Shard::unchecked(std::span<const std::byte> file, std::shared_ptr<const void> owner,
                       std::size_t count) {
    Shard shard;
    shard.file_ = file;
    shard.owner_ = std::move(owner);
    shard.count_ = count;
    return shard;
}

std::string_view Shard::config() const {
    const std::size_t begin = 4 + 4 * (count_ + 1);
    const std::size_t end = read_u32(offset_of(0));
    return {reinterpret_cast<const char*>(file_.data()) + begin, end - begin};
}

}  // namespace tune::loader
