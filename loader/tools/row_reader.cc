#include "loader/tools/row_reader.h"

#include <algorithm>
#include <numeric>

namespace tune::loader {

Result<void> read_rows(const RowSet& rows, std::int64_t begin, std::int64_t end,
                       std::int64_t batch_size,
                       const std::function<Result<void>(const RowBatch&)>& visit) {
    const std::vector<ColumnInfo>& columns = rows.catalogue.columns;
    BatchSlot slot(columns.size());
    std::vector<std::int64_t> ids;
    for (std::int64_t first = begin; first < end; first += batch_size) {
        ids.resize(static_cast<std::size_t>(std::min(batch_size, end - first)));
        std::iota(ids.begin(), ids.end(), first);
        TUNE_TRY_VOID(rows.decoder->fill(ids, slot));
        RowBatch batch{first, ids.size(), {}};
        for (std::size_t c = 0; c < columns.size(); ++c) {
            BatchSlot::ColumnBuffer& buffer = slot.columns[c];
            batch.columns.push_back({&columns[c], buffer.data.data(),
                                     columns[c].fixed ? nullptr : buffer.offsets.data(),
                                     columns[c].has_mask ? buffer.valid.data() : nullptr});
        }
        TUNE_TRY_VOID(visit(batch));
    }
    return {};
}

std::vector<std::int64_t> shard_begins(const Catalogue& catalogue) {
    std::vector<std::int64_t> begins = {0};
    for (const std::int64_t samples : catalogue.shard_samples)
        begins.push_back(begins.back() + samples);
    return begins;
}

}  // namespace tune::loader
