// Kernels of equal centre and width as one, and the masses that are kept for them.

#include "tuner/sampler/tpe/kernel_classes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "tests/tuner/sampler/reference.h"
#include "tuner/config/study_config.h"
#include "tuner/sampler/sampler.h"
#include "tuner/sampler/tpe/cell_tables.h"
#include "tuner/sampler/tpe/score.h"
#include "tuner/sampler/tpe/tpe_options.h"

namespace tune::tuner {
namespace {

struct Kernel {
    double mu;
    double inverse;
    [[nodiscard]] auto operator<=>(const Kernel&) const = default;
};

void expect_same(const KernelClasses& classes, const std::vector<Kernel>& rows) {
    for (std::size_t row = 0; row < rows.size(); ++row) {
        const std::uint32_t own = classes.of()[row];
        ASSERT_LT(own, classes.size());
        ASSERT_EQ(classes.mu()[own], rows[row].mu);
        ASSERT_EQ(classes.inverse()[own], rows[row].inverse);
    }
    for (std::size_t i = 0; i < kLaneCount; ++i)
        ASSERT_EQ(classes.of()[rows.size() + i], 0u) << "the block beyond the rows can be read";
}

TEST(KernelClasses, AreWhatTheRowsAreThroughAnyChanges) {
    std::mt19937 random(1);
    KernelClasses classes;
    std::vector<Kernel> rows;
    const auto any = [&] {
        return Kernel{static_cast<double>(random() % 8), 1 + static_cast<double>(random() % 3)};
    };
    for (int round = 0; round < 20'000; ++round) {
        const unsigned kind = random() % 8;
        const std::size_t row = rows.empty() ? 0 : random() % rows.size();
        const auto set = [&](const Kernel& kernel) {
            const auto left = row == 0 ? KernelClasses::kNone : static_cast<std::uint32_t>(row - 1);
            const auto right =
                row + 1 >= rows.size() ? KernelClasses::kNone : static_cast<std::uint32_t>(row + 1);
            rows[row] = kernel;
            classes.set(row, left, right, kernel.mu, kernel.inverse);
        };
        if (rows.empty() || kind < 3) {
            classes.insert_row(row);
            rows.insert(rows.begin() + static_cast<std::ptrdiff_t>(row), Kernel{});
            set(any());
        } else if (kind < 5) {
            set(any());
        } else if (kind < 7) {
            classes.erase_row(row);
            rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(row));
        } else if (round % 50 == 0) {
            classes.erase_front(row);
            rows.erase(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(row));
        }
        if (round % 100 == 0) expect_same(classes, rows);
    }
    EXPECT_LE(classes.size() - classes.unused(), rows.size());
}

TEST(KernelClasses, AreOneForEqualRowsWhenNumberedAnew) {
    KernelClasses classes;
    std::vector<std::uint32_t> order;
    std::vector<double> mu;
    std::vector<double> inverse;
    for (std::uint32_t row = 0; row < 100; ++row) {
        classes.insert_row(row);
        order.push_back(row);
        mu.push_back(row / 10);
        inverse.push_back(2);
    }
    classes.rebuild(order, mu.data(), inverse.data());
    EXPECT_EQ(classes.size(), 10u);
    EXPECT_EQ(classes.of()[19], classes.of()[10]);
    EXPECT_NE(classes.of()[19], classes.of()[20]);
    EXPECT_EQ(classes.unused(), 0u);
}

TEST(CellTables, KeepTheMassesOfTheClasses) {
    std::mt19937 random(2);
    const Axis axis = axis_of("x=1..20:int");
    CellTables tables(axis);
    std::size_t rows = 0;
    for (int round = 0; round < 6000; ++round) {
        if (rows < 40 || random() % 2 == 0) {
            tables.classes().insert_row(rows);
            tables.classes().set(rows, KernelClasses::kNone, KernelClasses::kNone,
                                 1 + static_cast<double>(random() % 20),
                                 1 / (1 + static_cast<double>(random() % 50)));
            ++rows;
        } else {
            tables.classes().erase_row(random() % rows--);
        }
        tables.settle(rows);
        ASSERT_TRUE(tables.is_keeping()) << "a coarse grid";
        if (round % 7 != 0) continue;
        const double at = 1 + static_cast<double>(random() % 20);
        const double* kept = tables.masses(at, at - 0.5, at + 0.5);
        const KernelClasses& classes = tables.classes();
        std::vector<double> anew((classes.size() + kLaneCount - 1) / kLaneCount * kLaneCount);
        log_cell_masses(at - 0.5, at + 0.5, classes.mu(), classes.inverse(), anew);
        for (std::size_t row = 0; row < rows; ++row)
            ASSERT_EQ(kept[classes.of()[row]], anew[classes.of()[row]]) << "round " << round;
    }
}

TEST(CellTables, OfFineGridsAreKeptOnlyWhereKernelsShareClasses) {
    CellTables tables(axis_of("x=0..2147483647:int"));
    for (std::size_t row = 0; row < 100; ++row) {
        tables.classes().insert_row(row);
        tables.classes().set(row, KernelClasses::kNone, KernelClasses::kNone,
                             static_cast<double>(row), 1e-6);
    }
    tables.settle(100);
    EXPECT_FALSE(tables.is_keeping());
    for (std::uint32_t row = 1; row < 100; ++row)
        tables.classes().set(row, row - 1, KernelClasses::kNone, 0, 1e-6);
    tables.settle(100);
    EXPECT_TRUE(tables.is_keeping());
}

/// Hostile spaces: one point, 2^31 points, 10,000 parameters. Ask + tell goes on and stays inside.
void expect_to_work(const std::vector<std::string>& words, std::uint64_t trials) {
    StudySource source;
    source.inline_parameters = words;
    const Space space = read_study(source).value().space;
    SamplerConfig config;
    config.duplicates = Duplicates::kAllow;
    const std::unique_ptr<Sampler> sampler = make_sampler(space, config, Goal::kMinimize, 3);
    for (std::uint64_t number = 0; number < trials; ++number) {
        Observation observation;
        observation.number = number;
        observation.state = Observation::State::kComplete;
        observation.point = sampler->suggest(number);
        observation.value = observation.point[0];
        const Result<void> checked = space.check(observation.point);
        ASSERT_TRUE(checked) << "trial " << number << ": " << checked.error().message;
        ASSERT_TRUE(sampler->observe(observation));
    }
}

TEST(Grids, OfOnePointAndOfTwo) {
    expect_to_work({"x=3..3:int", "y=0..1:int"}, 200);
}

TEST(Grids, OfManyPoints) {
    expect_to_work({"x=0..2147483647:int", "y=1..2147483647:int:log", "z=0..1:1e-9"}, 200);
}

TEST(Grids, OfTenThousandParameters) {
    std::vector<std::string> words;
    for (int i = 0; i < 10'000; ++i) words.push_back("x" + std::to_string(i) + "=1..50:int");
    expect_to_work(words, 14);
}

}  // namespace
}  // namespace tune::tuner
