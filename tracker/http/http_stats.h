#pragma once
// What the server counts of its requests, for /metrics.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/histogram.h"
#include "tracker/api/http/router.h"
#include "tracker/api/ops/prometheus.h"

namespace tune::tracker {

/// Requests by group of routes and status, times of answers by group. Written by the network
/// threads, each into its own part, with relaxed atomics; read by any thread. Cost of one request:
/// about 20 ns. Memory: 20 kB per network thread.
class HttpStatistics {
public:
    /// Groups of routes; further ones are counted as "other".
    static constexpr std::size_t kGroupsMax = 48;
    /// "runs" of /api/2.0/mlflow/runs/get and /ajax-api/..., "runs/log-metric", "runs/log-batch",
    /// "tune/studies", "artifacts", "ui", "page" for what the web page is made of.
    [[nodiscard]] static std::string group_of(std::string_view pattern);

    /// Called by the server before it starts. `router` outlives this.
    void bind(const Router& router, std::size_t worker_count);

    /// One answered request; `route` nullptr: refused before a route was known. On the thread of
    /// worker `worker`.
    void count(std::size_t worker, const Route* route, int status, double seconds);
    void connection_opened() { connections_.fetch_add(1, std::memory_order_relaxed); }
    void connection_closed() { connections_.fetch_sub(1, std::memory_order_relaxed); }
    void connection_refused() { refused_.fetch_add(1, std::memory_order_relaxed); }

    void write(PrometheusText& out) const;

private:
    /// Statuses that this server answers; others are counted as 0, "other".
    static constexpr std::array<int, 26> kStatuses = {0,   200, 201, 202, 204, 206, 304, 307, 308,
                                                      400, 401, 403, 404, 405, 408, 409, 412, 413,
                                                      415, 416, 429, 431, 500, 501, 503, 504};
    struct Group {
        std::array<std::atomic<std::uint64_t>, kStatuses.size()> by_status{};
        Histogram seconds{kSecondsBounds};
    };
    struct alignas(64) Part {
        std::array<Group, kGroupsMax> groups;
    };

    [[nodiscard]] std::size_t group_index(const Route* route) const;

    const Router* router_ = nullptr;
    std::vector<std::string> names_;            // by group
    std::vector<std::uint8_t> group_of_route_;  // by position in the router
    std::vector<std::unique_ptr<Part>> parts_;  // by worker
    std::atomic<std::int64_t> connections_{0};
    std::atomic<std::uint64_t> refused_{0};
};

}  // namespace tune::tracker
