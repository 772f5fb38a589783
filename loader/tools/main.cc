// tune-data: converts, inspects, verifies and measures data sets, and lists and clears the shared
// cache.
//
// Only the command line and its texts are here; the work is done by the tools beside it. MDS sets
// are inspected shard by shard, because there one can tell which shard is damaged; all other
// formats go through the reader that they share. Exit codes: 0 done, 1 failed, 2 wrong usage.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/text/counted.h"
#include "base/version.h"
#include "loader/cache/disk_cache.h"
#include "loader/format/parquet.h"
#include "loader/source/open_source.h"
#include "loader/tables/formats.h"
#include "loader/tools/convert/convert.h"
#include "loader/tools/convert/convert_anywhere.h"
#include "loader/tools/convert/convert_set.h"
#include "loader/tools/data_sets.h"
#include "loader/tools/inspect.h"
#include "loader/tools/progress.h"
#include "loader/tools/rows_inspect.h"
#include "loader/tools/set_options.h"
#include "loader/tools/stats.h"
#include "loader/tools/throughput.h"
#include "loader/tools/verify.h"

namespace tune::loader {
namespace {

constexpr int kExitError = 1;
constexpr int kExitUsage = 2;

std::atomic<bool> cancelled = false;

void print(const std::string& text) {
    std::fputs(text.c_str(), stdout);
}

int fail(const Error& error) {
    std::fprintf(stderr, "tune-data: %s\n", error.text().c_str());
    return kExitError;
}

/// "1,234 samples".
std::string counted_in_groups(std::int64_t count, const char* noun) {
    const std::string plain = counted(count, noun);
    return grouped(count) + plain.substr(plain.find(' '));
}

struct ConvertArguments {
    std::vector<std::string> paths;
    ConvertOptions options;
    std::string split;
    std::string size_limit = "64mb";
    std::string target = "mds";
    SetArguments set;
    bool as_json = false;
};

/// Whether the inputs are tables read row by row; a data set of any format otherwise.
bool are_tables(const ConvertArguments& arguments) {
    const auto is_table = [](const std::filesystem::path& path) {
        const std::string extension = path.extension().string();
        return extension == ".csv" || extension == ".tsv" ||
               (extension == ".parquet" && !std::filesystem::is_directory(path));
    };
    return arguments.target == "mds" && arguments.set.options.format.empty() &&
           std::all_of(arguments.paths.begin(), arguments.paths.end(), is_table);
}

Json report_json(const ConvertReport& report) {
    Json json = {{"sets", Json::array()}, {"columns", Json::array()}};
    for (const ConvertedSet& set : report.sets)
        json["sets"].push_back({{"directory", set.directory.string()},
                                {"samples", set.samples},
                                {"shards", set.shards},
                                {"bytes", set.bytes}});
    for (const PlannedColumn& column : report.columns)
        json["columns"].push_back({{"name", column.name}, {"encoding", column.encoding}});
    return json;
}

Result<ConvertReport> convert_data_set(ConvertArguments& arguments, const std::string& output) {
    const ConvertOptions& given = arguments.options;
    if (arguments.paths.size() != 1)
        return invalid_parameter(
            "a data set is converted by itself; tables (.csv, .tsv, .parquet) "
            "may be several");
    if (!given.columns.packs.empty() || !given.splits.empty())
        return invalid_parameter("--pack and --split are for tables (.csv, .tsv, .parquet files)");
    if (arguments.target != "mds" && arguments.target != "parquet")
        return invalid_parameter("--to: '" + arguments.target + "' is neither mds nor parquet");
    ConvertSetOptions options;
    arguments.set.directory = arguments.paths.front();
    TUNE_TRY(input, set_options(arguments.set));
    options.input = std::move(input);
    for (const std::string& list : given.columns.columns)
        for (std::size_t begin = 0; begin <= list.size();) {
            const std::size_t end = std::min(list.find(',', begin), list.size());
            options.input.columns.push_back(list.substr(begin, end - begin));
            begin = end + 1;
        }
    if (is_local_url(output))
        options.output = local_path(output);
    else
        options.output_url = output;
    options.target = arguments.target == "mds" ? ConvertTarget::kMds : ConvertTarget::kParquet;
    options.overwrite = given.overwrite;
    options.threads = arguments.set.options.threads;
    options.size_limit = given.size_limit.value_or(std::uint64_t{1} << 26);
    options.compression = given.compression;
    options.hashes = given.hashes;
    options.cancelled = given.cancelled;
    return convert_set(options);
}

int run_convert(ConvertArguments arguments) {
    ConvertOptions& options = arguments.options;
    if (arguments.paths.size() < 2) {
        std::fputs("tune-data: convert needs at least one table and the output directory\n",
                   stderr);
        return kExitUsage;
    }
    const std::string output = arguments.paths.back();
    arguments.paths.pop_back();
    // So that a half-written data set is taken away again.
    options.cancelled = &cancelled;
    std::signal(SIGINT, [](int) { cancelled = true; });
    std::signal(SIGTERM, [](int) { cancelled = true; });
    if (!arguments.split.empty()) {
        Result<std::vector<Split>> splits = parse_splits(arguments.split);
        if (!splits) return fail(splits.error());
        options.splits = *std::move(splits);
    }
    const Result<std::uint64_t> limit = parse_bytes(arguments.size_limit);
    if (!limit) return fail(Error{limit.error().code, "--size-limit: " + limit.error().message});
    options.size_limit = *limit;
    if (options.hashes == std::vector<std::string>{"none"}) options.hashes.clear();

    const Result<ConvertReport> report =
        are_tables(arguments) ? convert_anywhere(std::move(options), arguments.paths, output)
                              : convert_data_set(arguments, output);
    if (!report) return fail(report.error());
    if (arguments.as_json) {
        print(to_text(report_json(*report)) + "\n");
        return 0;
    }
    for (const ConvertedSet& set : report->sets)
        print("wrote " + counted_in_groups(set.samples, "sample") + " in " +
              counted_in_groups(set.shards, "shard") + " (" + readable_bytes(set.bytes) + ") to " +
              set.directory.string() + "\n");
    return 0;
}

struct InspectArguments {
    SetArguments set;
    InspectOptions options;
    bool as_json = false;
};

/// The data sets of MDS beneath the directory; nothing when it holds another format, or one was
/// asked for.
std::optional<std::vector<DataSet>> mds_sets(const SetArguments& arguments) {
    Result<std::vector<DataSet>> sets = find_data_sets_at(arguments.directory);
    const bool is_plain = arguments.options.format.empty() && arguments.options.columns.empty();
    if (!sets || !is_plain) return std::nullopt;
    for (const DataSet& set : *sets)
        if (!set.index.shards.empty() && set.index.shards.front().format != "mds")
            return std::nullopt;
    return *std::move(sets);
}

/// A data set of any format; where there is none, the answer for MDS, which is the usual one.
Result<RowSet> open_set(const SetArguments& arguments) {
    TUNE_TRY(options, set_options(arguments));
    options.reads_once = true;
    Result<RowSet> rows = open_rows(options);
    if (rows || rows.error().code != Code::kResourceDoesNotExist) return rows;
    const Result<std::vector<DataSet>> sets = find_data_sets_at(arguments.directory);
    return sets ? std::move(rows) : Result<RowSet>(sets.error());
}

int run_inspect_rows(const InspectArguments& arguments) {
    const Result<RowSet> rows = open_set(arguments.set);
    if (!rows) return fail(rows.error());
    const std::string& directory = arguments.set.directory;
    if (arguments.as_json) {
        const Result<Json> json = inspect_rows_json(directory, *rows, arguments.options);
        if (!json) return fail(json.error());
        print(to_text(Json::array({*json})) + "\n");
        return 0;
    }
    const Result<std::string> text = inspect_rows_text(directory, *rows, arguments.options);
    if (!text) return fail(text.error());
    print(*text);
    return 0;
}

int run_inspect(const InspectArguments& arguments) {
    const std::optional<std::vector<DataSet>> sets = mds_sets(arguments.set);
    if (!sets) return run_inspect_rows(arguments);
    Json all = Json::array();
    std::string text;
    for (const DataSet& set : *sets) {
        if (arguments.as_json) {
            Result<Json> json = inspect_json(set, arguments.options);
            if (!json) return fail(json.error());
            all.push_back(*std::move(json));
            continue;
        }
        Result<std::string> described = inspect_text(set, arguments.options);
        if (!described) return fail(described.error());
        text += (text.empty() ? "" : "\n") + *described;
    }
    print(arguments.as_json ? to_text(all) + "\n" : text);
    return 0;
}

struct VerifyArguments {
    SetArguments set;
    bool as_json = false;
};

int run_verify(const VerifyArguments& arguments) {
    std::vector<std::pair<std::string, VerifyReport>> reports;
    if (const std::optional<std::vector<DataSet>> sets = mds_sets(arguments.set)) {
        for (const DataSet& set : *sets) reports.emplace_back(set.directory.string(), verify(set));
    } else {
        const Result<RowSet> rows = open_set(arguments.set);
        if (!rows) return fail(rows.error());
        reports.emplace_back(arguments.set.directory, verify_rows(*rows));
    }
    Json all = Json::array();
    bool is_good = true;
    for (const auto& [directory, report] : reports) {
        is_good = is_good && report.errors.empty();
        if (arguments.as_json) {
            all.push_back({{"directory", directory},
                           {"samples", report.samples},
                           {"shards", report.shards},
                           {"shards_without_hash", report.shards_without_hash},
                           {"errors", report.errors}});
            continue;
        }
        for (const std::string& error : report.errors) print("faulty: " + error + "\n");
        const auto faulty = static_cast<std::int64_t>(report.errors.size());
        print(directory + ": " + counted_in_groups(report.samples, "sample") + " good, " +
              counted_in_groups(faulty, "faulty shard") + " of " + grouped(report.shards) + "\n");
        if (report.shards_without_hash > 0)
            print("  " + counted_in_groups(report.shards_without_hash, "shard") +
                  " have no hashes: changed values cannot be detected\n");
    }
    if (arguments.as_json) print(to_text(all) + "\n");
    return is_good ? 0 : kExitError;
}

struct BenchArguments {
    SetArguments set;
    std::string algo = "py1e";
    std::string cache_limit;
    bool no_shuffle = false;
    double seconds = 2;
    std::string decompressed_max = "2gb";
    bool as_json = false;
};

int run_bench(BenchArguments arguments) {
    const std::optional<ShuffleAlgo> algo = shuffle_algo_from_name(arguments.algo);
    if (!algo)
        return fail({Code::kInvalidParameterValue,
                     "--shuffle-algo: '" + arguments.algo +
                         "' is unknown; known are naive, py1s, py2s, py1br, py1e"});
    Result<DatasetOptions> options = set_options(arguments.set);
    if (!options) return fail(options.error());
    const Result<std::uint64_t> kept = parse_bytes(arguments.decompressed_max);
    if (!kept) return fail(Error{kept.error().code, "--decompressed-max: " + kept.error().message});
    options->decompressed_bytes_max = *kept;
    if (!arguments.cache_limit.empty()) {
        const Result<std::uint64_t> limit = parse_bytes(arguments.cache_limit);
        if (!limit)
            return fail(Error{limit.error().code, "--cache-limit: " + limit.error().message});
        options->cache_limit = *limit;
    }
    options->shuffle = !arguments.no_shuffle;
    options->shuffle_algo = *algo;
    const Result<Throughput> result = measure_throughput(*options, arguments.seconds);
    if (!result) return fail(result.error());
    const double samples_s = static_cast<double>(result->samples) / result->seconds;
    const double bytes_s = static_cast<double>(result->bytes) / result->seconds;
    if (arguments.as_json) {
        print(to_text(Json{{"samples", result->samples},
                           {"samples_per_s", samples_s},
                           {"bytes_per_s", bytes_s},
                           {"first_batch_s", result->first_batch_s}}) +
              "\n");
        return 0;
    }
    print(grouped(static_cast<std::int64_t>(samples_s)) + " samples/s, " +
          readable_bytes(static_cast<std::uint64_t>(bytes_s)) + "/s; first batch after " +
          std::to_string(static_cast<int>(result->first_batch_s * 1e3)) + " ms\n");
    return 0;
}

struct StatsArguments {
    SetArguments set;
    bool is_fresh = false;
    bool as_json = false;
};

std::string number_cell(const Json& json, const char* name) {
    const auto found = json.find(name);
    if (found == json.end() || found->is_null()) return "-";
    std::array<char, 32> text{};
    if (found->is_number()) std::snprintf(text.data(), text.size(), "%.6g", found->get<double>());
    return found->is_number() ? text.data() : found->get<std::string>();
}

int run_stats(const StatsArguments& arguments) {
    const Result<RowSet> rows = open_set(arguments.set);
    if (!rows) return fail(rows.error());
    const Result<Json> stats = cached_stats(arguments.set.directory, *rows,
                                            arguments.set.options.threads, arguments.is_fresh);
    if (!stats) return fail(stats.error());
    if (arguments.as_json) {
        print(to_text(*stats) + "\n");
        return 0;
    }
    for (const auto& [name, column] : (*stats)["columns"].items()) {
        std::string line = name + " (" + column["encoding"].get<std::string>() + "): ";
        if (column.contains("mean"))
            line += "mean " + number_cell(column, "mean") + ", std " + number_cell(column, "std") +
                    ", min " + number_cell(column, "min") + ", max " + number_cell(column, "max") +
                    ", ";
        if (column.contains("length") && column["length"].is_object())
            line += "length " + number_cell(column["length"], "min") + " to " +
                    number_cell(column["length"], "max") + ", mean " +
                    number_cell(column["length"], "mean") + ", ";
        print(line + counted_in_groups(column["nulls"].get<std::int64_t>(), "null") + "\n");
    }
    return 0;
}

void add_convert(CLI::App& app, ConvertArguments& arguments) {
    CLI::App* verb = app.add_subcommand(
        "convert",
        std::string("Turns tables or a data set of any format into MDS or Parquet (CSV, TSV") +
            (can_read_parquet() ? ", Parquet, ...)" : "; this build has no Parquet)"));
    verb->add_option("paths", arguments.paths, "TABLE... | DATA_SET, then OUTPUT; paths or URLs")
        ->required();
    verb->add_option("--to", arguments.target, "mds or parquet")->capture_default_str();
    arguments.set.nulls = "refuse";
    add_set_options(*verb, arguments.set, false);
    verb->add_option("--jobs", arguments.set.options.threads, "Threads (of a data set)")
        ->capture_default_str();
    verb->add_option("--columns", arguments.options.columns.columns,
                     "Columns to store: name[:encoding],... (default: all)");
    verb->add_option("--pack", arguments.options.columns.packs,
                     "Several columns as one array: name=p0..p63:uint8:8,8");
    verb->add_option("--split", arguments.split, "Exact random shares: train=0.8,val=0.2");
    verb->add_option("--seed", arguments.options.seed, "Seed of --split")->capture_default_str();
    verb->add_option("--size-limit", arguments.size_limit, "Largest shard before compression")
        ->capture_default_str();
    verb->add_option("--compression", arguments.options.compression,
                     "br, bz2, gz, zstd, each with [:level], or snappy");
    verb->add_option("--hashes", arguments.options.hashes, "Hashes to store, or none")
        ->delimiter(',')
        ->capture_default_str();
    verb->add_flag("--overwrite", arguments.options.overwrite, "Replace the output directory");
    verb->add_flag("--json", arguments.as_json, "Print the report as JSON");
}

void add_bench(CLI::App& app, BenchArguments& arguments) {
    CLI::App* verb = app.add_subcommand("bench", "Measures how fast a data set is read");
    DatasetOptions& options = arguments.set.options;
    options.batch_size = 256;
    add_set_options(*verb, arguments.set);
    verb->add_option("--local", options.local, "Where what is fetched from a URL is kept");
    verb->add_option("--cache-limit", arguments.cache_limit, "Most that --local may hold: 100gb");
    verb->add_option("--batch-size", options.batch_size)->capture_default_str();
    verb->add_option("--threads", options.threads)->capture_default_str();
    verb->add_option("--shuffle-algo", arguments.algo)->capture_default_str();
    verb->add_flag("--no-shuffle", arguments.no_shuffle);
    verb->add_option("--decompressed-max", arguments.decompressed_max,
                     "Decoded shards that are kept in memory")
        ->capture_default_str();
    verb->add_option("--seconds", arguments.seconds, "Read whole epochs for at least this long")
        ->capture_default_str();
    verb->add_flag("--json", arguments.as_json);
}

struct CacheArguments {
    std::string directory;
    bool removes = false;
    bool as_json = false;
};

int run_cache(const CacheArguments& arguments) {
    const Result<std::vector<CacheUsage>> caches = find_caches(arguments.directory);
    if (!caches) return fail(caches.error());
    Json all = Json::array();
    for (const CacheUsage& cache : *caches) {
        if (arguments.removes)
            if (const Result<void> deleted = cache_delete(cache.directory); !deleted)
                return fail(deleted.error());
        if (arguments.as_json)
            all.push_back({{"directory", cache.directory.string()},
                           {"bytes", cache.bytes},
                           {"files", cache.files},
                           {"in_use", cache.is_in_use}});
        else
            print((arguments.removes ? "deleted " : "") + cache.directory.string() + ": " +
                  readable_bytes(cache.bytes) + " in " +
                  counted_in_groups(static_cast<std::int64_t>(cache.files), "file") +
                  (cache.is_in_use ? ", in use" : "") + "\n");
    }
    if (arguments.as_json) print(to_text(all) + "\n");
    return 0;
}

void add_cache(CLI::App& app, CacheArguments& arguments) {
    CLI::App* verb = app.add_subcommand("cache", "Shows or deletes what was fetched from URLs");
    verb->require_subcommand(1);
    CLI::App* list = verb->add_subcommand("ls", "Caches in a folder, with their sizes");
    CLI::App* remove = verb->add_subcommand("rm", "Deletes the caches in a folder");
    remove->callback([&arguments] { arguments.removes = true; });
    for (CLI::App* each : {list, remove}) {
        each->add_option("directory", arguments.directory, "A cache, or a folder of caches")
            ->required();
        each->add_flag("--json", arguments.as_json);
    }
}

int run(int argc, char** argv) {
    use_arrow_formats();
    CLI::App app("Data sets for tune: convert, inspect, verify, measure.", "tune-data");
    app.set_version_flag("--version", std::string("tune-data ") + kVersion);
    app.require_subcommand(1);
    ConvertArguments convert_arguments;
    add_convert(app, convert_arguments);
    InspectArguments inspect_arguments;
    CLI::App* inspect_verb = app.add_subcommand("inspect", "Shows what a data set holds");
    add_set_options(*inspect_verb, inspect_arguments.set);
    inspect_verb->add_option("--rows", inspect_arguments.options.rows, "First samples to show")
        ->capture_default_str();
    inspect_verb->add_option("--shards", inspect_arguments.options.shards_max, "Shards to list")
        ->capture_default_str();
    inspect_verb->add_flag("--json", inspect_arguments.as_json);
    VerifyArguments verify_arguments;
    CLI::App* verify_verb = app.add_subcommand(
        "verify", "Checks sizes, hashes and every value; exit code 1 on an error");
    add_set_options(*verify_verb, verify_arguments.set);
    verify_verb->add_flag("--json", verify_arguments.as_json);
    BenchArguments bench_arguments;
    add_bench(app, bench_arguments);
    CacheArguments cache_arguments;
    add_cache(app, cache_arguments);
    StatsArguments stats_arguments;
    CLI::App* stats_verb =
        app.add_subcommand("stats", "Mean, spread and range of each column; kept beside the data");
    add_set_options(*stats_verb, stats_arguments.set);
    stats_verb->add_option("--threads", stats_arguments.set.options.threads)->capture_default_str();
    stats_verb->add_flag("--fresh", stats_arguments.is_fresh, "Do not use what was kept");
    stats_verb->add_flag("--json", stats_arguments.as_json);

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : kExitUsage;
    }
    if (app.got_subcommand("convert")) return run_convert(std::move(convert_arguments));
    if (app.got_subcommand("inspect")) return run_inspect(inspect_arguments);
    if (app.got_subcommand("verify")) return run_verify(verify_arguments);
    if (app.got_subcommand("cache")) return run_cache(cache_arguments);
    if (app.got_subcommand("stats")) return run_stats(stats_arguments);
    return run_bench(std::move(bench_arguments));
}

}  // namespace
}  // namespace tune::loader

int main(int argc, char** argv) {
    return tune::loader::run(argc, argv);
}
