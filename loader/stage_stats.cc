#include "loader/stage_stats.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace tune::loader {
namespace {

/// Waits below this part of the time are not worth a change.
constexpr double kUnnoticed = 0.02;

std::string percent(double part) {
    std::array<char, 16> text = {};
    std::snprintf(text.data(), text.size(), part < 0.0995 ? "%.1f %%" : "%.0f %%", 100 * part);
    return text.data();
}

std::string rate(double per_second, const char* unit) {
    std::array<char, 48> text = {};
    std::snprintf(text.data(), text.size(), "%.1f %s", per_second, unit);
    return text.data();
}

}  // namespace

std::string bottleneck(const StageStats& stats) {
    if (stats.elapsed_s <= 0 || stats.samples == 0) return "Nothing has been read yet.";
    const double waited = (stats.fetch_wait_s + stats.decode_wait_s) / stats.elapsed_s;
    const std::string share = percent(std::min(waited, 1.0));
    if (waited < kUnnoticed)
        return "The loader keeps up: it was waited for " + share + " of the time.";
    if (stats.fetch_wait_s > stats.decode_wait_s)
        return "The network holds the reader up (" + share + " of the time waited, " +
               rate(static_cast<double>(stats.fetched_bytes) / 1e6 / stats.elapsed_s, "MB/s") +
               " fetched): keep the data in a cache (local), fetch further ahead (predownload), or "
               "with more requests at once (download_connections).";
    struct Stage {
        double seconds;
        const char* what;
        const char* remedy;
    };
    const std::array<Stage, 3> stages = {
        Stage{stats.transform_s, "Decoding images",
              "smaller stored images, or keep them resized with `tune-data convert`"},
        Stage{stats.decompress_s, "Decompressing shards", "a faster compression (zstd:1), or none"},
        Stage{stats.read_s, "Reading and copying samples", "fewer columns, or faster storage"}};
    const Stage& worst =
        *std::max_element(stages.begin(), stages.end(),
                          [](const Stage& a, const Stage& b) { return a.seconds < b.seconds; });
    const double all = stats.transform_s + stats.decompress_s + stats.read_s;
    return std::string(worst.what) + " holds the reader up (" + share + " of the time waited; " +
           percent(all > 0 ? worst.seconds / all : 1.0) +
           " of the loader's work): more threads (now " + std::to_string(stats.threads) + "), " +
           worst.remedy + ".";
}

}  // namespace tune::loader
