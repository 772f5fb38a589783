// The contour plot: the interpolated grid against functions that solve the same equation and
// against Optuna's, the outlines against what they surround, the picture in its four forms.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/system/file.h"
#include "tuner/chart/png.h"
#include "tuner/chart/scene.h"
#include "tuner/chart/svg.h"
#include "tuner/chart/terminal.h"
#include "tuner/plots/level_grid.h"
#include "tuner/plots/plots.h"

namespace tune::tuner {
namespace {

constexpr std::size_t kSide = 100;

/// Saddle x^2 - y^2: the mean of its four neighbours everywhere on a grid.
double saddle(std::size_t column, std::size_t row) {
    const double x = static_cast<double>(column) / (kSide - 1) - 0.5;
    const double y = static_cast<double>(row) / (kSide - 1) - 0.5;
    return x * x - y * y;
}

template <typename Function>
LevelGrid grid_of(std::size_t side, Function&& f) {
    LevelGrid grid{.side = side, .z = {}};
    for (std::size_t row = 0; row < side; ++row)
        for (std::size_t column = 0; column < side; ++column) grid.z.push_back(f(column, row));
    return grid;
}

TEST(LevelGrid, ASurfaceThatIsGivenAroundIsFoundInside) {
    std::vector<GridValue> known;
    for (std::size_t i = 0; i < kSide; ++i)
        for (const auto& [column, row] :
             {std::pair{i, std::size_t{0}}, {i, kSide - 1}, {std::size_t{0}, i}, {kSide - 1, i}})
            known.push_back({column, row, 7 + saddle(column, row)});
    const LevelGrid grid = interpolated(kSide, known);
    for (std::size_t row = 0; row < kSide; ++row)
        for (std::size_t column = 0; column < kSide; ++column)
            ASSERT_NEAR(grid.at(column, row), 7 + saddle(column, row), 1e-10)
                << column << " " << row;
}

TEST(LevelGrid, TheGridIsOptunas) {
    const Json golden =
        parse_json(read_file(TUNE_SOURCE_DIR "/tests/tuner/golden/contour.json").value()).value();
    ASSERT_EQ(golden.at("side"), kSide);
    for (const Json& one : golden.at("grids")) {
        std::vector<GridValue> known;
        for (const Json& node : one.at("known")) known.push_back({node[0], node[1], node[2]});
        const LevelGrid grid = interpolated(kSide, known);
        for (const Json& node : one.at("shown"))
            EXPECT_NEAR(grid.at(node[0], node[1]), node[2].get<double>(), 1e-8)
                << known.size() << " known, at " << node;
    }
}

TEST(LevelGrid, OneValueIsEverywhereAndNoneNowhere) {
    EXPECT_TRUE(interpolated(kSide, {}).z.empty());
    EXPECT_TRUE(outlines({}, 0).empty());
    for (const double z : interpolated(20, {{3, 4, 1e300}}).z) EXPECT_EQ(z, 1e300);
    const LevelGrid last = interpolated(20, {{3, 4, 1}, {3, 4, 2}});
    EXPECT_NEAR(last.at(19, 0), 2, 1e-9) << "of two at one node the last counts";
}

/// Even-odd: whether the spot is inside.
bool is_inside(const std::vector<std::vector<GridSpot>>& loops, double x, double y) {
    bool inside = false;
    for (const std::vector<GridSpot>& loop : loops)
        for (std::size_t i = 0; i < loop.size(); ++i) {
            const GridSpot a = loop[i];
            const GridSpot b = loop[(i + 1) % loop.size()];
            if ((a.y > y) != (b.y > y) && x < a.x + (y - a.y) / (b.y - a.y) * (b.x - a.x))
                inside = !inside;
        }
    return inside;
}

TEST(Outlines, SurroundWhatIsAboveTheLevel) {
    // Hills, holes, saddles, plateaus that touch the edge.
    const LevelGrid grid = grid_of(40, [](std::size_t column, std::size_t row) {
        const auto x = static_cast<double>(column);
        const auto y = static_cast<double>(row);
        return std::sin(x * 0.41) * std::cos(y * 0.37) + 0.01 * x + (column == 7 ? 1 : 0);
    });
    for (const double level : {-0.9, -0.3, 0.0, 0.2, 0.75, 1.2}) {
        const auto loops = outlines(grid, level);
        ASSERT_FALSE(loops.empty());
        for (std::size_t row = 1; row + 1 < 40; ++row)
            for (std::size_t column = 1; column + 1 < 40; ++column) {
                // Not on an outline: a node that lies exactly at the level has no side.
                if (std::abs(grid.at(column, row) - level) < 1e-6) continue;
                EXPECT_EQ(is_inside(loops, static_cast<double>(column) + 1e-7,
                                    static_cast<double>(row) + 1e-7),
                          grid.at(column, row) > level)
                    << column << " " << row << " " << level;
            }
    }
    EXPECT_TRUE(outlines(grid, 99).empty());
    const auto all = outlines(grid, -99);
    ASSERT_EQ(all.size(), 1u);
    EXPECT_LE(all[0].size(), 5u) << "the whole grid: four corners, and where the way began";
}

TEST(Outlines, LieWhereAKnownSurfaceHasTheLevel) {
    const LevelGrid plane =
        grid_of(11, [](std::size_t column, std::size_t) { return static_cast<double>(column); });
    const auto border = outlines(plane, 3.25);
    ASSERT_EQ(border.size(), 1u);
    for (const GridSpot spot : border[0])
        EXPECT_TRUE(std::abs(spot.x - 3.25) < 1e-12 ||
                    (spot.x > 3.25 && (spot.x == 10 || spot.y == 0 || spot.y == 10)))
            << spot.x << " " << spot.y;
    // A cone of radius 20 in nodes: its outline is a circle, and one inside the other is a ring.
    const LevelGrid cone = grid_of(101, [](std::size_t column, std::size_t row) {
        return -std::hypot(static_cast<double>(column) - 50, static_cast<double>(row) - 50);
    });
    const auto circle = outlines(cone, -20);
    ASSERT_EQ(circle.size(), 1u);
    for (const GridSpot spot : circle[0])
        EXPECT_NEAR(std::hypot(spot.x - 50, spot.y - 50), 20, 0.02);
    const LevelGrid ring = grid_of(101, [&](std::size_t column, std::size_t row) {
        return -std::abs(cone.at(column, row) + 30);
    });
    EXPECT_EQ(outlines(ring, -5).size(), 2u);
    EXPECT_FALSE(is_inside(outlines(ring, -5), 50.2, 50.2)) << "the hole";
    EXPECT_TRUE(is_inside(outlines(ring, -5), 80.2, 50.2));
}

/// A study whose trials lie on a lattice of two parameters, with these values.
template <typename Function>
StudyData lattice(Function&& f, const char* goal = "min") {
    const Json study = {{"name", "s"},
                        {"metric", {{"name", "loss"}, {"goal", goal}}},
                        {"space", parse_json(R"({"x": {"float": [0, 1]},
                                                 "y": {"float": [0.001, 1], "log": true}})")
                                      .value()}};
    Json trials = Json::array();
    for (int i = 0; i <= 10; ++i)
        for (int j = 0; j <= 10; ++j) {
            const double x = i / 10.0;
            const double y = std::pow(10, -3 + 0.3 * j);
            trials.push_back({{"number", i * 11 + j},
                              {"state", "complete"},
                              {"params", {{"x", x}, {"y", y}}},
                              {"value", f(x, y)}});
        }
    return study_data(study, trials).value();
}

const PlotOptions kPair = {.params = {"x", "y"}};

TEST(Contour, BandsEndWhereTheObjectiveHasTheirValue) {
    // 10 x: the border of "at most 6" is x = 0.6, for every y.
    const StudyData data = lattice([](double x, double) { return 10 * x; });
    const chart::Figure figure = make_plot(PlotKind::kContour, data, kPair).value();
    EXPECT_EQ(figure.bar.edges,
              (std::vector<std::string>{"9", "8", "7", "6", "5", "4", "3", "2", "1"}));
    const chart::Panel& panel = figure.panels.at(0);
    ASSERT_EQ(panel.layers.size(), 11u) << "ten bands and the trials";
    const auto band = std::find_if(
        panel.layers.begin(), panel.layers.end(),
        [](const chart::Layer& layer) { return layer.labels.at(0) == "loss at most 6"; });
    ASSERT_NE(band, panel.layers.end());
    ASSERT_GT(band->x.size(), 3u);
    for (std::size_t i = 0; i < band->x.size(); ++i)
        EXPECT_TRUE(std::abs(band->x[i] - 0.6) < 0.02 || std::abs(band->x[i] - panel.x.low) < 1e-9)
            << band->x[i] << " " << band->y[i];
    EXPECT_EQ(panel.layers.back().x.size(), 121u);
    EXPECT_NEAR(panel.x.low, -0.05, 1e-12) << "5 % beyond the trials";
    EXPECT_NEAR(std::log10(panel.y.high), 0.15, 1e-9);
}

TEST(Contour, TheBestBandIsTheBrightestForBothGoals) {
    const auto f = [](double x, double y) { return x + y; };
    for (const char* goal : {"min", "max"}) {
        const chart::Figure figure = make_plot(PlotKind::kContour, lattice(f, goal), kPair).value();
        const std::vector<chart::Layer>& layers = figure.panels[0].layers;
        EXPECT_EQ(layers.front().shade, std::vector<double>{0});
        EXPECT_EQ(layers[layers.size() - 2].shade, std::vector<double>{1});
        const double first = std::stod(figure.bar.edges.front());
        const double last = std::stod(figure.bar.edges.back());
        EXPECT_EQ(first > last, std::string(goal) == "min");
    }
}

TEST(Contour, OneDivergedTrialDoesNotFlattenTheRest) {
    const StudyData data =
        lattice([](double x, double y) { return x == 0.5 && y == 0.001 ? 1e9 : x; });
    const chart::Figure figure = make_plot(PlotKind::kContour, data, kPair).value();
    EXPECT_GE(figure.bar.edges.size(), 4u);
    EXPECT_LT(std::stod(figure.bar.edges.front()), 10);
    EXPECT_NE(figure.note.find("is drawn as"), std::string::npos) << figure.note;
}

TEST(Contour, ValuesOfManyPowersHaveLogarithmicLevels) {
    const StudyData data = lattice([](double x, double) { return std::pow(10, 6 * x); });
    const chart::Figure figure = make_plot(PlotKind::kContour, data, kPair).value();
    ASSERT_FALSE(figure.bar.edges.empty());
    EXPECT_EQ(figure.bar.edges.back(), "10");
}

TEST(Contour, HasAllFourForms) {
    const StudyData data =
        lattice([](double x, double y) { return (x - 0.3) * (x - 0.3) + std::log10(y); });
    const chart::Figure figure = make_plot(PlotKind::kContour, data, kPair).value();
    const chart::Scene scene = chart::layout(figure);
    const std::string svg = chart::to_svg(scene);
    EXPECT_NE(svg.find("fill-rule=\"evenodd\""), std::string::npos);
    EXPECT_NE(svg.find("<title>loss at most"), std::string::npos);
    EXPECT_NE(svg.find(">worst</text>"), std::string::npos);
    EXPECT_LT(svg.size(), 300'000u);
    const Result<std::string> png = chart::to_png(scene, chart::Theme::kDark, 1);
    ASSERT_TRUE(png) << png.error().message;
    EXPECT_EQ(png->substr(1, 3), "PNG");
    const std::string text =
        chart::to_terminal(figure, {.columns = 80, .rows = 16, .colours = false});
    EXPECT_NE(text.find("loss: worst ━ "), std::string::npos) << text;
    EXPECT_NE(text.find("━ best"), std::string::npos) << text;
    const Json json = chart::to_json(figure);
    EXPECT_EQ(json["panels"][0]["layers"][0]["mark"], "areas");
    EXPECT_EQ(json["colours"]["edges"].size() + 2, json["panels"][0]["layers"].size());
}

TEST(Contour, ChoicesAndTrialsBeyondTheirBounds) {
    const Json study = {{"name", "s"},
                        {"metric", {{"name", "loss"}, {"goal", "min"}}},
                        {"space", parse_json(R"({"x": {"float": [0, 1]},
                                                 "opt": {"choice": ["sgd", "adam", "lion"]}})")
                                      .value()}};
    Json trials = Json::array();
    for (int i = 0; i < 12; ++i)
        trials.push_back({{"number", i},
                          {"state", "complete"},
                          {"params", {{"x", i / 12.0}, {"opt", i % 3 == 0 ? "sgd" : "adam"}}},
                          {"value", i},
                          {"violation", i == 5 ? 1 : 0}});
    const chart::Figure figure =
        make_plot(PlotKind::kContour, study_data(study, trials).value(), {.params = {"x", "opt"}})
            .value();
    const std::vector<chart::Layer>& layers = figure.panels[0].layers;
    EXPECT_EQ(figure.panels[0].y.categories.size(), 3u);
    EXPECT_EQ(layers[layers.size() - 2].name, "beyond its bounds");
    EXPECT_EQ(layers[layers.size() - 2].x.size(), 1u);
    EXPECT_EQ(layers.back().x.size(), 11u);
}

}  // namespace
}  // namespace tune::tuner
