#include "loader/tools/throughput.h"

#include <chrono>

namespace tune::loader {
namespace {

std::uint64_t bytes_of(const Batch& batch) {
    std::uint64_t bytes = 0;
    for (const Column& column : batch.columns)
        bytes += column.info->fixed ? batch.count * column.info->sample_bytes
                                    : column.offsets[batch.count];
    return bytes;
}

}  // namespace

Result<Throughput> measure_throughput(DatasetOptions options, double seconds_min) {
    using Clock = std::chrono::steady_clock;
    const auto since = [](Clock::time_point start) {
        return std::chrono::duration<double>(Clock::now() - start).count();
    };
    Throughput result;
    const Clock::time_point opened = Clock::now();
    TUNE_TRY(dataset, Dataset::open(std::move(options)));
    Batch batch;
    TUNE_TRY_VOID(dataset->next(batch));
    result.first_batch_s = since(opened);

    const Clock::time_point start = Clock::now();
    while (true) {
        TUNE_TRY(more, dataset->next(batch));
        if (more) {
            result.samples += static_cast<std::int64_t>(batch.count);
            result.bytes += bytes_of(batch);
            continue;
        }
        result.seconds = since(start);
        if (result.seconds >= seconds_min) return result;
    }
}

}  // namespace tune::loader
