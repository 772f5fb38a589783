#include "loader/tools/verify.h"

#include <span>

#include "loader/format/mds/encoding.h"
#include "loader/format/mds/shard.h"
#include "loader/source/shard_store.h"
#include "loader/tools/progress.h"

namespace tune::loader {
namespace {

Result<void> check_samples(const Shard& shard, const ShardInfo& info) {
    std::vector<Encoding> encodings;
    for (const std::string& text : info.column_encodings) {
        TUNE_TRY(encoding, parse_encoding(text));
        encodings.push_back(std::move(encoding));
    }
    const SampleLayout layout(info.column_sizes);
    std::vector<std::span<const std::byte>> payloads(layout.column_count());
    for (std::size_t i = 0; i < shard.sample_count(); ++i) {
        const std::string place = "sample " + std::to_string(i);
        if (!layout.split(shard.sample(i), payloads))
            return Error{Code::kDataLoss, place + " does not match its columns"};
        for (std::size_t c = 0; c < payloads.size(); ++c) {
            Result<void> checked = check_payload(encodings[c], payloads[c]);
            if (checked) continue;
            return Error{Code::kDataLoss, place + ", column '" + info.column_names[c] +
                                              "': " + checked.error().message};
        }
    }
    return {};
}

}  // namespace

VerifyReport verify(const DataSet& set) {
    const std::unique_ptr<ShardStore> store = set.open(true, 0);
    Progress progress;
    VerifyReport report;
    for (std::size_t s = 0; s < set.index.shards.size(); ++s) {
        const ShardInfo& info = set.index.shards[s];
        const FileInfo& file = info.zip_data ? *info.zip_data : info.raw_data;
        ++report.shards;
        if (file.hashes.empty()) ++report.shards_without_hash;
        const Result<std::shared_ptr<const Shard>> shard = store->get(s);
        if (!shard) {
            report.errors.push_back(shard.error().text());
        } else if (const Result<void> checked = check_samples(**shard, info); !checked) {
            report.errors.push_back("shard '" + (set.directory / file.basename).string() +
                                    "': " + checked.error().message);
        } else {
            report.samples += info.samples;
        }
        if (progress.is_due())
            progress.show("verified " + grouped(report.shards) + " of " +
                          grouped(static_cast<std::int64_t>(set.index.shards.size()), "shard"));
    }
    return report;
}

}  // namespace tune::loader
