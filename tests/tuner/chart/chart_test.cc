// Scales, texts and the back-ends, with what users may put into names and values.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "tuner/chart/png.h"
#include "tuner/chart/scale.h"
#include "tuner/chart/svg.h"
#include "tuner/chart/terminal.h"
#include "tuner/chart/text.h"

namespace tune::chart {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kMax = std::numeric_limits<double>::max();
/// Markup, an escape sequence, a right-to-left mark, half a character, wide characters.
constexpr const char* kHostile = "<script>&\"'\x1b[2J\x9b\xE2\x80\xAE\xC3 \xE5\xAD\xA6";

std::vector<std::string> labels_of(const Axis& axis, std::size_t count) {
    std::vector<std::string> labels;
    for (const Tick& tick : ticks_of(axis, count)) labels.push_back(tick.label);
    return labels;
}

using Labels = std::vector<std::string>;

TEST(Scale, LinearTicksAreRoundWithEqualDecimals) {
    EXPECT_EQ(labels_of({.low = 0, .high = 1}, 5),
              (Labels{"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"}));
    EXPECT_EQ(labels_of({.low = -3, .high = 3}, 3), (Labels{"-2", "0", "2"}));
    EXPECT_EQ(labels_of({.low = 0, .high = 3, .is_whole = true}, 10), (Labels{"0", "1", "2", "3"}));
}

TEST(Scale, LogTicksAreDecadesOrDigits) {
    EXPECT_EQ(labels_of({.kind = ScaleKind::kLog, .low = 1e-5, .high = 0.1}, 6),
              (Labels{"1e-05", "0.0001", "0.001", "0.01", "0.1"}));
    EXPECT_EQ(labels_of({.kind = ScaleKind::kLog, .low = 1, .high = 20}, 6),
              (Labels{"1", "2", "5", "10", "20"}));
}

TEST(Scale, DurationTicksAreRoundTimes) {
    EXPECT_EQ(labels_of({.kind = ScaleKind::kDuration, .low = 0, .high = 7200}, 4),
              (Labels{"0 s", "30:00", "1:00:00", "1:30:00", "2:00:00"}));
}

TEST(Scale, ShortDurationsHaveOneUnit) {
    EXPECT_EQ(labels_of({.kind = ScaleKind::kDuration, .low = 0, .high = 0.2}, 4),
              (Labels{"0 s", "50 ms", "100 ms", "150 ms", "200 ms"}));
    EXPECT_EQ(labels_of({.kind = ScaleKind::kDuration, .low = 0, .high = 0.75}, 3),
              (Labels{"0 s", "0.25 s", "0.50 s", "0.75 s"}));
    EXPECT_EQ(duration_label(0.0042), "4.2 ms");
    EXPECT_EQ(duration_label(0.25), "0.2 s");
    EXPECT_EQ(duration_label(0), "0 s");
}

TEST(Scale, NeverHasOneTickAlone) {
    EXPECT_EQ(labels_of({.low = 0.68, .high = 9.32, .is_whole = true}, 2).size(), 4u);
    for (double high = 1; high < 100; high += 0.7)
        for (std::size_t count = 1; count < 6; ++count)
            EXPECT_GE(labels_of({.low = -0.3, .high = high}, count).size(), 2u) << high;
    EXPECT_EQ(labels_of({.low = 0.5, .high = 1.5, .is_whole = true}, 3), (Labels{"1"}));
}

TEST(Scale, CategoriesAreThinnedToTheRoom) {
    const Axis axis = category_axis("", {"a", "b", "c", "d"});
    EXPECT_EQ(labels_of(axis, 4), (Labels{"a", "b", "c", "d"}));
    EXPECT_EQ(labels_of(axis, 2), (Labels{"a", "c"}));
    EXPECT_DOUBLE_EQ(unit_of(axis, 0), 0.125);
}

TEST(Scale, AxesFitWhateverComes) {
    const std::vector<std::vector<double>> all = {
        {},          {kNaN, kInfinity}, {5},        {0},      {-1e-300, 1e-300}, {-kMax, kMax},
        {kMax},      {1e308, 1e308},    {1e-320},   {1, 1},   {-2, kNaN, 7},     {1e-300, 1e300},
        {123456789}, {1e15, 1e15 + 1},  {0.1, 0.1}, {-0.0, 0}};
    for (const auto& values : all)
        for (const ScaleKind kind : {ScaleKind::kLinear, ScaleKind::kLog, ScaleKind::kDuration}) {
            const Axis axis = axis_for("x", values, kind);
            EXPECT_LT(axis.low, axis.high);
            EXPECT_TRUE(std::isfinite(axis.low) && std::isfinite(axis.high));
            for (const double value : values) {
                const double unit = unit_of(axis, value);
                const bool is_shown =
                    std::isfinite(value) && (kind != ScaleKind::kLog || value > 0);
                EXPECT_EQ(std::isnan(unit), !is_shown) << value;
                if (!is_shown) continue;
                EXPECT_GE(unit, -1e-9) << value;
                EXPECT_LE(unit, 1 + 1e-9) << value;
            }
            EXPECT_LE(ticks_of(axis, 6).size(), 20u);
        }
}

TEST(Text, IsCleaned) {
    const std::string found = clean(kHostile);
    EXPECT_EQ(found.find('\x1b'), std::string::npos);
    EXPECT_EQ(found.find('\x9b'), std::string::npos);
    EXPECT_EQ(found.find("\xE2\x80\xAE"), std::string::npos);
    EXPECT_EQ(clean("a\xC2\x85z"), "a\xEF\xBF\xBDz");
    EXPECT_EQ(clean("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
    EXPECT_EQ(clean("gr\xC3\xBC\xC3\x9F \xF0\x9F\x8E\x89"), "gr\xC3\xBC\xC3\x9F \xF0\x9F\x8E\x89");
    EXPECT_EQ(clean(found), found);
}

TEST(Text, IsMeasuredAndClippedByCells) {
    EXPECT_EQ(cells_of("a\xE5\xAD\xA6"), 3u);
    EXPECT_EQ(clip_cells("\xE5\xAD\xA6\xE5\xAD\xA6\xE5\xAD\xA6", 4), "\xE5\xAD\xA6\xE2\x80\xA6");
    EXPECT_EQ(clip_cells("abc", 3), "abc");
    EXPECT_EQ(clip_cells("abcd", 3), "ab\xE2\x80\xA6");
    EXPECT_EQ(clip_cells("abcd", 0), "");
    EXPECT_LE(ems_of(clip_ems("a long name that will not fit", 6)), 6.0);
    EXPECT_EQ(clip_middle_ems("short", 6), "short");
    const std::string middle = clip_middle_ems("parameter_number_107", 6);
    EXPECT_TRUE(middle.starts_with("par") && middle.ends_with("107")) << middle;
    EXPECT_LE(ems_of(middle), 6.0);
    EXPECT_EQ(clip_middle_ems("\xE5\xAD\xA6\xE5\xAD\xA6\xE5\xAD\xA6\xE5\xAD\xA6", 3),
              "\xE5\xAD\xA6\xE2\x80\xA6\xE5\xAD\xA6");
}

/// Something of every mark, and names from hell.
Figure every_mark(std::size_t points) {
    Panel panel{.title = kHostile,
                .x = axis_for(kHostile, {0, 10}),
                .y = axis_for("y", {1, 1000}, ScaleKind::kLog)};
    std::mt19937 random(1);
    Layer dots{.name = kHostile};
    for (std::size_t i = 0; i < points; ++i) {
        dots.x.push_back(std::uniform_real_distribution<>(0, 10)(random));
        dots.y.push_back(std::uniform_real_distribution<>(1, 1000)(random));
        dots.labels.emplace_back(kHostile);
    }
    panel.layers = {
        dots,
        {.mark = Mark::kLines, .name = "l", .x = {0, 5, kNaN, 6, 7}, .y = {1, kNaN, kNaN, 5, kMax}},
        {.mark = Mark::kSteps, .x = {0, kInfinity, 9}, .y = {1, 2, -4}, .dashed = true},
        {.mark = Mark::kSpans, .x = {1}, .y = {30}, .x2 = {4}, .labels = {kHostile}},
        {.mark = Mark::kAreas,
         .x = {0, 10, 10, 0, kNaN, 2, 3, kInfinity, kNaN, 4, 5, 5},
         .y = {1, 1, 1000, 1000, kNaN, 2, 3, -4, kNaN, 50, 50, 60},
         .shade = {kNaN},
         .labels = {kHostile}}};
    Panel bars{
        .x = axis_for("share", {0, 1}),
        .y = category_axis("", {kHostile, "b"}),
        .layers = {{.mark = Mark::kBars, .x = {0.4, kNaN}, .y = {0, 1}, .labels = {kHostile}}}};
    Panel parallel{.x = category_axis("", {"", ""}),
                   .layers = {{.mark = Mark::kLines, .x = {0, 1}, .y = {0.2, 0.9}, .shade = {1}}},
                   .columns = {axis_for("a", {0, 1}), category_axis(kHostile, {kHostile, "d"})}};
    return {.title = kHostile,
            .note = kHostile,
            .panels = {panel, bars, parallel},
            .columns = 2,
            .bar = {.title = kHostile, .low = "l", .high = "h", .edges = {kHostile, "2"}}};
}

TEST(Svg, IsWellFormedWhateverTheNames) {
    const std::string svg = to_svg(layout(every_mark(20)));
    EXPECT_EQ(svg.find("<script"), std::string::npos);
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_EQ(svg.find("inf"), std::string::npos);
    EXPECT_EQ(svg, clean(svg.substr(0, svg.find('\n'))) + svg.substr(svg.find('\n')));
    for (const char c : svg) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
    std::size_t open = 0;
    std::size_t close = 0;
    for (std::size_t at = 0; (at = svg.find("<g ", at)) != std::string::npos; ++at) ++open;
    for (std::size_t at = 0; (at = svg.find("</g>", at)) != std::string::npos; ++at) ++close;
    EXPECT_EQ(open, close);
    EXPECT_EQ(open, 3u);
    EXPECT_NE(svg.find("prefers-color-scheme:dark"), std::string::npos);
}

TEST(Svg, ThemesAreFixedWhenAskedFor) {
    const Scene scene = layout(every_mark(1));
    const std::string dark = to_svg(scene, Theme::kDark);
    EXPECT_EQ(dark.find("prefers-color-scheme"), std::string::npos);
    EXPECT_NE(dark.find(hex_text(rgb_of(Role::kSurface, Theme::kDark))), std::string::npos);
    EXPECT_EQ(dark.find(hex_text(rgb_of(Role::kSurface, Theme::kLight))), std::string::npos);
}

TEST(Svg, StaysSmallForAnyNumberOfPoints) {
    const std::string some = to_svg(layout(every_mark(10'000)));
    EXPECT_LT(some.size(), 1'500'000u);
    Figure line{.panels = {{.x = axis_for("x", {0, 1e6}), .y = axis_for("y", {0, 1})}}};
    Layer layer{.mark = Mark::kLines};
    for (int i = 0; i < 200'000; ++i) {
        layer.x.push_back(i * 5);
        layer.y.push_back(i % 7 / 7.0);
    }
    line.panels[0].layers.push_back(std::move(layer));
    EXPECT_LT(to_svg(layout(line)).size(), 200'000u);
}

TEST(Svg, NothingLeavesThePicture) {
    const Scene scene = layout(every_mark(50), {.width = 300, .height = 200});
    EXPECT_EQ(scene.width, 300);
    for (const Shape& shape : scene.shapes)
        if (const auto* text = std::get_if<TextShape>(&shape)) {
            EXPECT_GE(text->at.x, 0);
            EXPECT_LE(text->at.x, scene.width);
        }
    EXPECT_GT(layout({}).height, 100);
}

TEST(Png, IsAPictureOfTheSizeAskedFor) {
    const Result<std::string> png =
        to_png(layout(every_mark(20), {.width = 300, .height = 200}), Theme::kDark, 1);
    ASSERT_TRUE(png) << png.error().message;
    EXPECT_EQ(png->substr(1, 3), "PNG");
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>((*png)[i]); };
    EXPECT_EQ(byte(18) * 256 + byte(19), 300);
    EXPECT_EQ(byte(22) * 256 + byte(23), 200);
    EXPECT_GT(png->size(), 2000u);
    EXPECT_FALSE(to_png({.width = 8000, .height = 20'000}, Theme::kLight, 4));
}

TEST(Terminal, LinesFitAndAreClean) {
    for (const bool colours : {false, true})
        for (const std::size_t columns : {10u, 40u, 100u}) {
            const std::string text =
                to_terminal(every_mark(200), {.columns = columns, .rows = 8, .colours = colours});
            EXPECT_EQ(text.find("\x1b[2J"), std::string::npos);
            EXPECT_EQ(text.find('\x1b') != std::string::npos, colours);
            if (colours) continue;
            for (std::size_t at = 0; at < text.size();) {
                const std::size_t end = text.find('\n', at);
                EXPECT_LE(cells_of(text.substr(at, end - at)), std::max<std::size_t>(columns, 36))
                    << text.substr(at, end - at);
                at = end + 1;
            }
        }
}

TEST(Terminal, DrawsALineOfBraille) {
    Figure figure{.title = "t",
                  .panels = {{.x = axis_for("x", {0, 1}), .y = axis_for("y", {0, 1})}}};
    figure.panels[0].layers.push_back({.mark = Mark::kLines, .x = {0, 1}, .y = {0, 1}});
    const std::string text = to_terminal(figure, {.columns = 40, .rows = 5});
    EXPECT_NE(text.find("\xE2\xA1"), std::string::npos) << text;  // U+2840..287F
    EXPECT_NE(text.find("0.5"), std::string::npos) << text;
}

TEST(Terminal, ParallelCoordinatesSayTheirRanges) {
    Layer lines{.mark = Mark::kLines};
    for (int i = 0; i < 31; ++i) {
        lines.x.insert(lines.x.end(), {0, 1, kNaN});
        lines.y.insert(lines.y.end(), {0.1, 0.9, kNaN});
        lines.shade.push_back(0.5);
    }
    const Figure figure{.title = "t",
                        .panels = {{.x = category_axis("", {"n", "opt"}),
                                    .layers = {lines},
                                    .columns = {{.low = 0.7, .high = 9.3, .is_whole = true},
                                                category_axis("opt", {"sgd", "adam"})}}}};
    const std::string text = to_terminal(figure, {.columns = 60, .rows = 5});
    EXPECT_NE(text.find("1..9"), std::string::npos) << text;
    EXPECT_NE(text.find("sgd..adam"), std::string::npos) << text;
    EXPECT_NE(text.find("the best 30 trials"), std::string::npos) << text;
}

TEST(Json, HoldsWhatIsPlotted) {
    const Json json = to_json(every_mark(3));
    EXPECT_EQ(json["panels"].size(), 3u);
    EXPECT_EQ(json["panels"][0]["y"]["scale"], "log");
    EXPECT_EQ(json["panels"][0]["layers"][0]["x"].size(), 3u);
    EXPECT_EQ(json["panels"][0]["layers"][1]["y"][1], nullptr);
    EXPECT_EQ(json["panels"][2]["axes"][1]["categories"][1], "d");
}

TEST(Colour, RampAndCube) {
    EXPECT_EQ(hex_text(ramp_rgb(0)), "#472d7b");
    EXPECT_EQ(ramp_rgb(-5), ramp_rgb(0));
    EXPECT_EQ(ramp_rgb(kNaN), ramp_rgb(0));
    EXPECT_EQ(ramp_rgb(7), ramp_rgb(1));
    EXPECT_EQ(terminal_colour(0x000000), 16);
    EXPECT_EQ(terminal_colour(0xFFFFFF), 231);
}

}  // namespace
}  // namespace tune::chart
