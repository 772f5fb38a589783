#pragma once
// The verbs that look into a study: plot, importance, replay of pruners, top.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tune::cli {

struct PlotCommand {
    std::optional<std::string> server = {};
    std::optional<std::string> data = {};
    std::string study = {};
    std::string kind = {};  ///< empty: history, or what `study` says where no study is called so
    std::string output = {};  ///< FILE.svg or FILE.png; "-": SVG to stdout
    bool terminal = false;
    bool json = false;
    std::vector<std::string> params = {};
    std::string metric = {};
    std::string theme = {};  ///< light, dark; empty: SVG follows the reader, PNG is light
    double width = 900;
    double height = 0;
};

struct ImportanceCommand {
    std::optional<std::string> server = {};
    std::optional<std::string> data = {};
    std::string study = {};
    std::string method = "ped-anova";
    std::string metric = {};
    std::uint64_t seed = 0;
    bool json = false;
};

struct PrunersCommand {
    std::optional<std::string> server = {};
    std::optional<std::string> data = {};
    std::string study = {};
    std::vector<std::string> pruners = {};  ///< as --pruner of `run`; empty: the usual ones
    bool json = false;
};

struct TopCommand {
    std::optional<std::string> server = {};
    std::optional<std::string> data = {};
    bool once = false;
    bool json = false;
};

[[nodiscard]] int run_plot(const PlotCommand& options);
[[nodiscard]] int run_importance(const ImportanceCommand& options);
[[nodiscard]] int run_pruners(const PrunersCommand& options);
[[nodiscard]] int run_top(const TopCommand& options);

}  // namespace tune::cli
