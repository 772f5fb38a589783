// Each network thread counts into its own part, so counting costs no shared cache line; a reader
// adds the parts up and may be a request behind, which a counter may be.

#include "tracker/http/http_stats.h"

#include <algorithm>
#include <functional>
#include <map>

namespace tune::tracker {
namespace {

constexpr std::size_t kUnmatched = 0;
constexpr std::size_t kPage = 1;
constexpr std::size_t kOther = 2;

std::string_view take_segment(std::string_view& path) {
    while (path.starts_with('/')) path.remove_prefix(1);
    const std::string_view segment = path.substr(0, path.find('/'));
    path.remove_prefix(segment.size());
    return segment;
}

}  // namespace

std::string HttpStatistics::group_of(std::string_view pattern) {
    std::string_view rest = pattern;
    std::string_view first = take_segment(rest);
    if (first.empty() || first.starts_with('{')) return "page";
    if (first != "api" && first != "ajax-api") return "server";
    std::string_view second = take_segment(rest);
    if (second == "ui") return "ui";
    second = take_segment(rest);        // behind the version
    if (second.empty()) return "docs";  // /api/openapi.json, /api/docs
    if (second == "mlflow-artifacts") return "artifacts";
    const std::string third(take_segment(rest));
    // What training scripts wait for, apart from searches of the same group.
    if (third == "runs" && (rest == "/log-metric" || rest == "/log-batch"))
        return third + std::string(rest);
    if (second == "mlflow") return third.starts_with('{') ? "other" : third;
    return std::string(second) + (third.empty() ? "" : "/" + third);
}

void HttpStatistics::bind(const Router& router, std::size_t worker_count) {
    router_ = &router;
    names_ = {"unmatched", "page", "other"};
    group_of_route_.clear();
    std::map<std::string, std::size_t> known = {{"page", kPage}, {"other", kOther}};
    for (const Route& route : router.routes()) {
        const std::string name = group_of(route.pattern);
        auto found = known.find(name);
        if (found == known.end()) {
            const std::size_t index = names_.size() < kGroupsMax ? names_.size() : kOther;
            if (index != kOther) names_.push_back(name);
            found = known.emplace(name, index).first;
        }
        group_of_route_.push_back(static_cast<std::uint8_t>(found->second));
    }
    parts_.clear();
    for (std::size_t i = 0; i < worker_count; ++i) parts_.push_back(std::make_unique<Part>());
}

std::size_t HttpStatistics::group_index(const Route* route) const {
    if (route == nullptr) return kUnmatched;
    const std::vector<Route>& routes = router_->routes();
    // The fallback's route lies elsewhere; std::less orders pointers into different objects.
    const std::less<const Route*> before;
    const bool is_listed =
        !before(route, routes.data()) && before(route, routes.data() + routes.size());
    if (!is_listed) return kPage;
    return group_of_route_[static_cast<std::size_t>(route - routes.data())];
}

void HttpStatistics::count(std::size_t worker, const Route* route, int status, double seconds) {
    Group& group = parts_[worker]->groups[group_index(route)];
    const auto found = std::lower_bound(kStatuses.begin(), kStatuses.end(), status);
    const bool is_known = found != kStatuses.end() && *found == status;
    const auto slot = is_known ? static_cast<std::size_t>(found - kStatuses.begin()) : 0;
    group.by_status[slot].fetch_add(1, std::memory_order_relaxed);
    group.seconds.observe(seconds);
}

void HttpStatistics::write(PrometheusText& out) const {
    out.family("tune_http_requests_total", "counter", "Answered requests by group of routes.");
    for (std::size_t g = 0; g < names_.size(); ++g)
        for (std::size_t s = 0; s < kStatuses.size(); ++s) {
            std::uint64_t sum = 0;
            for (const auto& part : parts_)
                sum += part->groups[g].by_status[s].load(std::memory_order_relaxed);
            if (sum == 0) continue;
            const std::string status = s == 0 ? "other" : std::to_string(kStatuses[s]);
            out.sample("tune_http_requests_total", {{"group", names_[g]}, {"status", status}},
                       static_cast<double>(sum));
        }
    out.family("tune_http_request_seconds", "histogram",
               "From a request's headers to its answer, without sending it.");
    for (std::size_t g = 0; g < names_.size(); ++g) {
        HistogramCounts sum;
        for (const auto& part : parts_) sum.add(part->groups[g].seconds.counts());
        if (sum.count() == 0) continue;
        out.histogram("tune_http_request_seconds", {{"group", names_[g]}}, sum);
    }
    out.single("tune_http_connections", "gauge", "Open connections, event streams among them.",
               static_cast<double>(connections_.load(std::memory_order_relaxed)));
    out.single("tune_http_connections_refused_total", "counter",
               "Connections beyond the limit that got a 429 or were closed.",
               static_cast<double>(refused_.load(std::memory_order_relaxed)));
}

}  // namespace tune::tracker
