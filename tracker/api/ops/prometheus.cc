// A family's samples must follow its header and no family may come twice; PrometheusText keeps that
// by opening a family before its samples. Sources are asked when the page is, so nothing is sampled
// while nobody looks.

#include "tracker/api/ops/prometheus.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "base/text/number_text.h"
#include "base/version.h"
#include "tracker/store/stats.h"

namespace tune::tracker {
namespace {

/// Of the process that answers; taken when the program starts.
const double kStarted_s =
    std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();

void append_number(std::string& out, double value) {
    if (std::isnan(value)) {
        out += "NaN";
    } else if (std::isinf(value)) {
        out += value > 0 ? "+Inf" : "-Inf";
    } else {
        append_shortest(out, value);
    }
}

void append_escaped(std::string& out, std::string_view text) {
    for (const char c : text) {
        if (c == '\\' || c == '"') out += '\\';
        if (c == '\n')
            out += "\\n";
        else
            out += c;
    }
}

double seconds_of(const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

/// Pages of /proc/self/statm: the whole address space, then what is in memory.
std::pair<double, double> memory_bytes() {
    long long all = 0;
    long long resident = 0;
    std::FILE* const file = std::fopen("/proc/self/statm", "re");
    if (file == nullptr) return {0, 0};
    const int read = std::fscanf(file, "%lld %lld", &all, &resident);
    std::fclose(file);
    const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
    if (read != 2) return {0, 0};
    return {static_cast<double>(all) * page, static_cast<double>(resident) * page};
}

double open_descriptors() {
    DIR* const folder = ::opendir("/proc/self/fd");
    if (folder == nullptr) return 0;
    int count = 0;
    while (const dirent* entry = ::readdir(folder)) count += entry->d_name[0] != '.' ? 1 : 0;
    ::closedir(folder);
    return count - 1;  // this folder's own
}

}  // namespace

void PrometheusText::family(std::string_view name, std::string_view type, std::string_view help) {
    out_.append("# HELP ").append(name).append(" ").append(help).append("\n# TYPE ");
    out_.append(name).append(" ").append(type).append("\n");
}

void PrometheusText::begin(std::string_view name, std::string_view suffix, Labels labels,
                           std::string_view le) {
    out_.append(name).append(suffix);
    if (labels.size() == 0 && le.empty()) return;
    out_ += '{';
    bool is_first = true;
    const auto label = [&](std::string_view key, std::string_view value) {
        if (!is_first) out_ += ',';
        is_first = false;
        out_.append(key).append("=\"");
        append_escaped(out_, value);
        out_ += '"';
    };
    for (const auto& [key, value] : labels) label(key, value);
    if (!le.empty()) label("le", le);
    out_ += '}';
}

void PrometheusText::end(double value) {
    out_ += ' ';
    append_number(out_, value);
    out_ += '\n';
}

void PrometheusText::sample(std::string_view name, Labels labels, double value) {
    begin(name, "", labels, "");
    end(value);
}

void PrometheusText::histogram(std::string_view name, Labels labels,
                               const HistogramCounts& counts) {
    double below = 0;
    for (std::size_t i = 0; i < counts.buckets.size(); ++i) {
        below += static_cast<double>(counts.buckets[i]);
        std::string le;
        append_number(le, i < counts.bounds.size() ? counts.bounds[i] : INFINITY);
        begin(name, "_bucket", labels, le);
        end(below);
    }
    begin(name, "_sum", labels, "");
    end(counts.sum);
    begin(name, "_count", labels, "");
    end(below);
}

void PrometheusText::single(std::string_view name, std::string_view type, std::string_view help,
                            double value) {
    family(name, type, help);
    sample(name, {}, value);
}

void write_process_metrics(PrometheusText& out) {
    out.family("tune_build_info", "gauge", "The version of the program; always 1.");
    out.sample("tune_build_info", {{"version", kVersion}, {"mlflow", kMlflowVersion}}, 1);
    const auto [virtual_bytes, resident_bytes] = memory_bytes();
    out.single("process_resident_memory_bytes", "gauge", "Memory of the process in RAM.",
               resident_bytes);
    out.single("process_virtual_memory_bytes", "gauge", "Address space of the process.",
               virtual_bytes);
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    out.single("process_cpu_seconds_total", "counter", "Time on processors, user and system.",
               seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime));
    out.single("process_start_time_seconds", "gauge", "Start of the process since 1970.",
               kStarted_s);
    out.single("process_open_fds", "gauge", "Open file descriptors.", open_descriptors());
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    out.single("process_max_fds", "gauge", "Limit of open file descriptors.",
               static_cast<double>(limit.rlim_cur));
}

void write_store_metrics(PrometheusText& out, const Store& store) {
    const StoreStatistics now = store.statistics();
    const auto gauge = [&](const char* name, const char* help, auto value) {
        out.single(name, "gauge", help, static_cast<double>(value));
    };
    const auto counter = [&](const char* name, const char* help, auto value) {
        out.single(name, "counter", help, static_cast<double>(value));
    };
    gauge("tune_writer_queue_commands", "Commands waiting for the writer.", now.commands_waiting);
    gauge("tune_writer_queue_bytes", "Bytes of the commands waiting for the writer.",
          now.command_bytes_waiting);
    counter("tune_writer_rejected_total", "Commands refused because the queue was full.",
            now.commands_rejected);
    out.family("tune_writer_group_commands", "histogram", "Commands in one transaction.");
    out.histogram("tune_writer_group_commands", {}, now.group_commands);
    counter("tune_commits_total", "Transactions on disk.", now.commit_seconds.count());
    gauge("tune_commit_position",
          "Number of the last commit with events; continues after a restart.",
          store.last_position());
    out.family("tune_commit_seconds", "histogram",
               "Time of COMMIT: writing the log and its fsync.");
    out.histogram("tune_commit_seconds", {}, now.commit_seconds);
    gauge("tune_observer_queue_commits", "Commits that observers have not seen yet.",
          now.commits_waiting_for_observers);
    gauge("tune_read_queue_jobs", "Reads waiting for a reader thread.", now.read_jobs_waiting);
    counter("tune_read_rejected_total", "Reads refused because the queue was full.",
            now.read_jobs_rejected);
    out.family("tune_read_connections", "gauge", "Read connections to the database by state.");
    out.sample("tune_read_connections", {{"state", "in_use"}},
               static_cast<double>(now.read_connections_in_use));
    out.sample("tune_read_connections", {{"state", "idle"}},
               static_cast<double>(now.read_connections_open - now.read_connections_in_use));
    out.family("tune_database_bytes", "gauge", "Size of the database and its log on disk.");
    out.sample("tune_database_bytes", {{"file", "db"}}, static_cast<double>(now.database_bytes));
    out.sample("tune_database_bytes", {{"file", "wal"}}, static_cast<double>(now.log_bytes));
}

void write_hub_metrics(PrometheusText& out, const EventHub& hub) {
    out.single("tune_event_listeners", "gauge", "Open streams of live events.",
               static_cast<double>(hub.reader_count()));
}

void add_metrics_route(Router& router, Store& store, std::vector<MetricsSource> sources) {
    auto handler = [&store, sources = std::move(sources)](const std::shared_ptr<Request>&,
                                                          const Responder& respond) {
        const auto work = [&sources, respond] {
            PrometheusText out;
            for (const MetricsSource& source : sources) source(out);
            Response response;
            response.content_type = "text/plain; version=0.0.4; charset=utf-8";
            response.body = out.take();
            respond(std::move(response));
        };
        if (!store.post_read(work)) work();
    };
    router.add({Method::kGet,
                {Access::kRead, Subject::kServer},
                "/metrics",
                Body::kNone,
                "Metrics for Prometheus",
                std::move(handler)});
}

}  // namespace tune::tracker
