// Reads over HTTP at the size of a large team's server: 20,000 runs with 400 metrics each, 100,000
// runs in one experiment, 10,000 names of metrics, a history of 1,000,000 points.
//   read_bench [SHARE]     default 1; 0.1 fills a tenth of the runs, for a quick look

#include <thread>

#include "tests/bench/tracker/http_load.h"

namespace {

using namespace tune::bench;

constexpr std::size_t kWriters = 64;
constexpr int kMetricsARun = 400;
constexpr int kHistoryPoints = 1'000'000;
/// The server gives back what its reads freed when none came for 2 s.
constexpr std::chrono::seconds kQuiet{3};

std::string get(const std::string& path) {
    return "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1:5000\r\n\r\n";
}

std::string search(const Json& body) {
    return post("runs/search", body.dump(), "identity");
}

class Bench {
public:
    Bench(const fs::path& bin_dir, double share) : share_(share), server_(bin_dir) {
        for (std::size_t i = 0; i < kWriters; ++i)
            writers_.push_back(std::make_unique<Connection>(server_.port()));
    }

    void measure_all() {
        many_metrics();
        many_runs();
        many_names();
        history();
        report("reads of large stores: memory right afterwards", server_.memory_mb(), "MB", "lower",
               0);
        std::this_thread::sleep_for(kQuiet);
        report("reads of large stores: memory after 3 s of quiet", server_.memory_mb(), "MB",
               "lower", 100);
    }

private:
    std::string create_experiment(const std::string& name) {
        return call(reader(), "experiments/create", {{"name", name}})["experiment_id"]
            .get<std::string>();
    }

    /// Sends one request of each writer, then takes all answers: groups of commits as of a team.
    template <class Make, class Take>
    void exchange_all(std::size_t count, const Make& make, const Take& take) {
        for (std::size_t i = 0; i < count; ++i) writers_[i]->send(make(i));
        for (std::size_t i = 0; i < count; ++i) {
            while (!writers_[i]->receive()) {
            }
            take(i, writers_[i]->body());
        }
    }

    /// Runs with `metric_count` metrics of one point, from number `first_metric` on.
    std::vector<std::string> fill(const std::string& experiment, int run_count, int metric_count,
                                  int first_metric = 0) {
        std::vector<std::string> ids;
        for (int done = 0; done < run_count; done += static_cast<int>(kWriters)) {
            const auto count = std::min(kWriters, static_cast<std::size_t>(run_count - done));
            const std::size_t base = ids.size();
            exchange_all(
                count,
                [&](std::size_t i) {
                    const Json body = {{"experiment_id", experiment},
                                       {"start_time", (done + static_cast<int>(i)) / 3}};
                    return post("runs/create", body.dump(), "identity");
                },
                [&](std::size_t, const std::string& answer) {
                    ids.push_back(Json::parse(answer)["run"]["info"]["run_id"].get<std::string>());
                });
            exchange_all(
                count,
                [&](std::size_t i) {
                    return batch(ids[base + i], done + static_cast<int>(i), metric_count,
                                 first_metric);
                },
                [](std::size_t, const std::string&) {});
        }
        return ids;
    }

    static std::string batch(const std::string& run, int number, int metric_count,
                             int first_metric) {
        std::string body = R"({"run_id": ")" + run + R"(", "metrics": [)";
        for (int k = 0; k < metric_count; ++k) {
            const double value = (number * 7919 + k * 31) % 10'007 / 10'007.0;
            body += (k > 0 ? "," : "") + std::string(R"({"key":"metric_)") +
                    std::to_string(first_metric + k) + R"(","value":)" + std::to_string(value) +
                    R"(,"timestamp":1,"step":1})";
        }
        body += R"(], "params": [{"key": "lr", "value": ")" + std::to_string(number % 10) + "\"}]}";
        return post("runs/log-batch", body, "identity");
    }

    /// The middle of `rounds` answers.
    void time(const std::string& name, const std::string& request, double target_ms, int rounds) {
        std::vector<double> times;
        for (int i = 0; i <= rounds; ++i) {
            Connection& connection = reader();
            const auto begin = Clock::now();
            bytes_ = connection.exchange(request).size();
            if (i > 0) times.push_back(seconds_since(begin) * 1000);  // the first one fills caches
        }
        report(name.c_str(), quantile(times, 0.5), "ms", "lower", target_ms);
        std::fprintf(stderr, "  %zu bytes\n", bytes_);
    }

    /// The same of an answer in chunks, whose bytes are counted and not kept.
    void time_stream(const std::string& name, const std::string& request, double target_ms,
                     int rounds) {
        std::vector<double> times;
        std::vector<char> piece(1 << 18);
        for (int i = 0; i < rounds; ++i) {
            Connection& connection = reader();
            const auto begin = Clock::now();
            connection.send(request);
            std::string tail;
            for (bytes_ = 0; !tail.ends_with("\r\n0\r\n\r\n");) {
                const ssize_t got = ::recv(connection.fd(), piece.data(), piece.size(), 0);
                require(got > 0, "the server closed the connection");
                const auto count = static_cast<std::size_t>(got);
                bytes_ += count;
                const std::size_t kept = std::min<std::size_t>(count, 16);
                tail = (tail + std::string(piece.data() + count - kept, kept));
                if (tail.size() > 16) tail.erase(0, tail.size() - 16);
            }
            times.push_back(seconds_since(begin) * 1000);
        }
        report(name.c_str(), quantile(times, 0.5), "ms", "lower", target_ms);
        std::fprintf(stderr, "  %zu bytes\n", bytes_);
    }

    void many_metrics() {
        const std::string experiment = create_experiment("20,000 x 400");
        fill(experiment, static_cast<int>(20'000 * share_), kMetricsARun);
        const std::string size = "20,000 runs x 400 metrics: ";
        Json query = {{"experiment_ids", {experiment}},
                      {"filter", "metrics.metric_7 < 0.5"},
                      {"order_by", {"metrics.metric_3 DESC"}},
                      {"max_results", 50},
                      {"fields", {"info", "metrics.metric_3", "metrics.metric_7"}}};
        time(size + "filter, order, top 50, p50", search(query), 5, 100);
        query["filter"] = "metrics.metric_7.min < 0.5 OR NOT metrics.metric_9 > 0.1";
        time(size + "OR, NOT and min, order, top 50, p50", search(query), 5, 100);
        query["filter"] = "metrics.metric_7 < 0.5 AND params.lr = '3'";
        time(size + "metric and param, order, top 50, p50", search(query), 50, 20);
        query["filter"] = "metrics.metric_7 < 0.5";
        query.erase("fields");
        time(size + "as the first, all 400 metrics of each, p50", search(query), 25, 50);
        report("memory after these", server_.memory_mb(), "MB", "lower", 100);
    }

    void many_runs() {
        const std::string experiment = create_experiment("100,000");
        const int count = static_cast<int>(100'000 * share_);
        fill(experiment, count, 2);
        Json query = {{"experiment_ids", {experiment}}, {"max_results", 100}};
        time("100,000 runs: first page of 100, p50", search(query), 3, 100);
        const Json first = query;
        for (const int percent : {50, 99}) {
            query = first;
            query["max_results"] = count * percent / 100 / 20;
            for (int page = 0; page < 20; ++page) {
                query["fields"] = {"info"};
                query["page_token"] =
                    call(reader(), "runs/search", query)["next_page_token"].get<std::string>();
            }
            query["max_results"] = 100;
            query.erase("fields");
            time("100,000 runs: page of 100 at " + std::to_string(percent) + " %, p50",
                 search(query), 3, 100);
        }
        query = first;
        query["order_by"] = {"metrics.metric_1 ASC"};
        time("100,000 runs: page of 100 by a metric, p50", search(query), 25, 30);
    }

    void many_names() {
        const std::string experiment = create_experiment("10,000 names");
        for (int k = 0; k < 100; ++k) fill(experiment, 10, 100, 100 * k);
        const std::string wide = create_run(reader(), experiment);
        for (int k = 0; k < 20; ++k) reader().exchange(batch(wide, 1, 500, 500 * k));
        const Json query = {{"experiment_ids", {experiment}},
                            {"filter", "metrics.metric_5000 < 0.9"},
                            {"order_by", {"metrics.metric_5001"}},
                            {"fields", {"info", "metrics.metric_5000"}},
                            {"max_results", 50}};
        time("10,000 metrics: filter, order, p50", search(query), 5, 100);
        time("10,000 metrics: one run with all of them, p50",
             get("/api/2.0/mlflow/runs/get?run_id=" + wide), 10, 50);
        // What the page reads once to find columns, filter and sort by itself.
        time("10,000 metrics: the page's table of 1,001 runs, p50",
             get("/api/ui/experiments/" + experiment + "/runs"), 50, 20);
    }

    void history() {
        const std::string run = create_run(reader(), "0");
        for (int at = 0; at < kHistoryPoints; at += 1'000) {
            std::string body = R"({"run_id": ")" + run + R"(", "metrics": [)";
            for (int k = at; k < at + 1'000; ++k)
                body += (k > at ? "," : "") + std::string(R"({"key":"m","value":)") +
                        std::to_string(static_cast<double>(k * 7'919LL % 10'007) / 7) +
                        R"(,"timestamp":)" + std::to_string(1'700'000'000'000 + 1'250LL * k) +
                        R"(,"step":)" + std::to_string(k) + "}";
            reader().exchange(post("runs/log-batch", body + "]}", "identity"));
        }
        const std::string of_run = "run_ids=" + run + "&metric_key=m";
        const std::string buckets = "/api/2.0/tune/metrics/get-history-buckets?" + of_run;
        time("1,000,000 points: 800 buckets, p50", get(buckets + "&buckets=800"), 5, 100);
        time("1,000,000 points: 20,000 of them in 800 buckets, p50",
             get(buckets + "&buckets=800&start_step=400000&end_step=419999"), 5, 100);
        const std::string whole = "/api/2.0/mlflow/metrics/get-history?metric_key=m&run_id=" + run;
        time("1,000,000 points: page of 25,000, p50", get(whole + "&max_results=25000"), 10, 20);
        server_.reset_peak();
        const double before_mb = server_.memory_mb();
        time_stream("1,000,000 points: all of them, p50", get(whole), 150, 5);
        report("1,000,000 points: memory for all of them", server_.memory_mb("VmHWM:") - before_mb,
               "MB", "lower", 20);
    }

    /// A stream ends its connection; the next request needs a new one.
    Connection& reader() {
        reader_ = std::make_unique<Connection>(server_.port());
        return *reader_;
    }

    double share_;
    const Server server_;
    std::vector<std::unique_ptr<Connection>> writers_;
    std::unique_ptr<Connection> reader_;
    std::size_t bytes_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    const double share = argc > 1 ? std::atof(argv[1]) : 1;
    return run_bench(
        [&] { Bench(fs::read_symlink("/proc/self/exe").parent_path(), share).measure_all(); });
}
