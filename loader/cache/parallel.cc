#include "loader/cache/parallel.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace tune::loader {
namespace {

constexpr std::size_t kParallelMax = 16;

}  // namespace

Result<void> for_each_parallel(std::size_t count,
                               const std::function<Result<void>(std::size_t)>& work) {
    std::atomic<std::size_t> next = 0;
    std::mutex mutex;
    std::optional<std::pair<std::size_t, Error>> first_error;
    const auto run = [&] {
        for (std::size_t i = next++; i < count; i = next++) {
            Result<void> done = work(i);
            if (done) continue;
            const std::lock_guard lock(mutex);
            if (!first_error || i < first_error->first) first_error = {i, std::move(done).error()};
            next = count;
        }
    };
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < std::min(count, kParallelMax); ++i) threads.emplace_back(run);
    run();
    for (std::thread& thread : threads) thread.join();
    if (first_error) return first_error->second;
    return {};
}

}  // namespace tune::loader
