#include "worker/train/report/loader_stats.h"

#include <algorithm>
#include <utility>

namespace tune::train {

std::vector<NamedValue> loader_metrics(const loader::StageStats& before,
                                       const loader::StageStats& after,
                                       std::chrono::duration<double> elapsed, std::int64_t ranks) {
    const double seconds = elapsed.count();
    if (seconds <= 0 || after.samples == before.samples) return {};
    const double fetch_wait = after.fetch_wait_s - before.fetch_wait_s;
    const double decode_wait = after.decode_wait_s - before.decode_wait_s;
    return {{"samples_per_second",
             static_cast<double>((after.samples - before.samples) * ranks) / seconds},
            {"loader_wait_share", std::clamp((fetch_wait + decode_wait) / seconds, 0.0, 1.0)},
            {"loader_fetch_wait_s", fetch_wait},
            {"loader_decode_wait_s", decode_wait},
            {"loader_read_s", after.read_s - before.read_s},
            {"loader_decompress_s", after.decompress_s - before.decompress_s},
            {"loader_transform_s", after.transform_s - before.transform_s},
            {"loader_fetched_mb",
             static_cast<double>(after.fetched_bytes - before.fetched_bytes) / 1e6}};
}

std::vector<NamedValue> LoaderStats::take(const loader::StageStats& stats, Clock::time_point now) {
    return loader_metrics(std::exchange(last_, stats), stats, now - std::exchange(at_, now),
                          ranks_);
}

}  // namespace tune::train
