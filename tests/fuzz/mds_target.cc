// An untrusted MDS dataset: the text of index.json, a 0 byte, then the bytes of its first shard.
// Property: an error, or samples inside of the file.

#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "loader/format/mds/encoding.h"
#include "loader/format/mds/index.h"
#include "loader/format/mds/shard.h"
#include "tests/fuzz/fuzz.h"

namespace tune::fuzz {
namespace {

using namespace tune::loader;

void read_samples(const Shard& shard, const ShardInfo& info) {
    const SampleLayout layout(info.column_sizes);
    std::vector<std::span<const std::byte>> payloads(layout.column_count());
    for (std::size_t i = 0; i < shard.sample_count(); ++i) {
        if (!layout.split(shard.sample(i), payloads)) continue;
        for (std::size_t column = 0; column < payloads.size(); ++column) {
            const Result<Encoding> encoding = parse_encoding(info.column_encodings[column]);
            if (!encoding) continue;
            const bool is_good = check_payload(*encoding, payloads[column]).has_value();
            const auto shown = describe_payload(*encoding, payloads[column], 10);
            FUZZ_CHECK(!is_good || shown.has_value());
            if (encoding->kind != EncodingKind::kNdarray) continue;
            const Result<ArrayView> array = decode_array(*encoding, payloads[column]);
            if (array) FUZZ_CHECK(array->bytes.size() <= payloads[column].size());
        }
    }
}

}  // namespace
}  // namespace tune::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tune::fuzz;
    using namespace tune::loader;
    const std::string_view text = text_of(data, size);
    const std::size_t zero = text.find('\0');
    static_cast<void>(parse_encoding(text.substr(0, zero)));
    static_cast<void>(parse_bytes(text.substr(0, zero)));
    const auto index = parse_index(text.substr(0, zero));
    if (!index) return 0;
    const auto again = parse_index(index_text(*index));
    FUZZ_CHECK(again && index_text(*again) == index_text(*index));
    if (index->shards.empty() || zero == std::string_view::npos) return 0;
    // In a block of its exact size, so that the sanitizer sees every read beyond it.
    const std::string_view bytes = text.substr(zero + 1);
    auto file = std::make_unique<std::byte[]>(bytes.size());
    std::memcpy(file.get(), bytes.data(), bytes.size());
    ShardInfo info = index->shards.front();
    info.raw_data.bytes = bytes.size();
    const auto shard = Shard::make({file.get(), bytes.size()}, nullptr, info);
    if (!shard) return 0;
    static_cast<void>(shard->config());
    read_samples(*shard, info);
    return 0;
}
