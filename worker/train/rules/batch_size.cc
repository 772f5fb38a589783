// Doubling finds the region in few probes; the straight line through the last two peaks then gives
// the one size that is worth a last one.

#include "worker/train/rules/batch_size.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace tune::train {
namespace {

std::int64_t rounded(std::int64_t batch) {
    return batch >= 8 ? batch - batch % 8 : batch;
}

/// The largest size that should fit, between one that does and one that does not; 0: none to try.
std::int64_t predicted(const BatchSearch& search, const std::vector<Probe>& good,
                       std::int64_t too_large) {
    const std::int64_t best = good.back().batch;
    if (search.memory_limit <= 0.0 || good.size() < 2 || good.back().peak_bytes <= 0.0)
        return rounded((best + too_large) / 2);
    const Probe& before = good[good.size() - 2];
    const MemoryModel model =
        MemoryModel::through(before.batch, before.peak_bytes, best, good.back().peak_bytes);
    return std::min(model.largest_batch(search.memory_limit, kMemoryMargin), too_large - 1);
}

}  // namespace

MemoryModel MemoryModel::through(std::int64_t batch1, double peak1, std::int64_t batch2,
                                 double peak2) {
    MemoryModel model;
    model.per_sample = std::max(0.0, (peak2 - peak1) / static_cast<double>(batch2 - batch1));
    model.fixed = std::max(0.0, peak1 - model.per_sample * static_cast<double>(batch1));
    return model;
}

std::int64_t MemoryModel::largest_batch(double limit, double margin) const {
    const double room = limit * (1.0 - margin) - fixed;
    if (room <= 0.0) return 0;
    constexpr double kBatchMax = 1'000'000;
    const double batch = per_sample > 0.0 ? std::min(room / per_sample, kBatchMax) : kBatchMax;
    return rounded(static_cast<std::int64_t>(batch));
}

Result<Probe> find_batch_size(const BatchSearch& search,
                              const std::function<Result<Probe>(std::int64_t batch)>& probe) {
    std::vector<Probe> good;
    std::int64_t too_large = 0;
    std::int64_t batch = std::min(search.first, search.largest);
    for (int i = 0; i < kProbesMax; ++i) {
        TUNE_TRY(result, probe(batch));
        if (!result.fits) {
            too_large = batch;
            if (!good.empty()) break;
            if (batch == 1)
                return Error{
                    Code::kResourceExhausted,
                    "out of memory with a batch of one sample; a smaller model needs less"};
            batch = std::max<std::int64_t>(1, batch / 2);
            continue;
        }
        const bool gains =
            good.empty() || result.samples_per_s >= good.back().samples_per_s * (1.0 + kLeastGain);
        if (search.stops_when_slower && !gains) return good.back();
        good.push_back(result);
        if (too_large > 0 || batch >= search.largest) break;
        batch = std::min(batch * 2, search.largest);
    }
    if (too_large == 0) return good.back();
    const std::int64_t last = predicted(search, good, too_large);
    if (last <= good.back().batch) return good.back();
    TUNE_TRY(result, probe(last));
    const bool better = result.fits && (!search.stops_when_slower ||
                                        result.samples_per_s > good.back().samples_per_s);
    return better ? result : good.back();
}

}  // namespace tune::train
