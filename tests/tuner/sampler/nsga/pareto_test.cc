// Ranks, volumes, subsets, crowding and niches against Optuna 5.0.0 (golden/pareto.json) and
// against brute force.

#include "tuner/sampler/nsga/pareto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/system/file.h"
#include "tuner/sampler/nsga/hypervolume.h"
#include "tuner/sampler/nsga/nsga_selection.h"

namespace tune::tuner::pareto_test {
namespace {

using ::testing::ElementsAre;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

LossTable table_of(const Json& rows) {
    LossTable table(rows.at(0).size());
    for (const Json& row : rows) table.add(row.get<std::vector<double>>());
    return table;
}

std::vector<std::size_t> integers(const Json& list) {
    return list.get<std::vector<std::size_t>>();
}

void expect_near(const LossTable& got, const Json& want) {
    ASSERT_EQ(got.rows(), want.size());
    for (std::size_t row = 0; row < got.rows(); ++row)
        for (std::size_t c = 0; c < got.columns(); ++c)
            EXPECT_NEAR(got[row][c], want[row][c].get<double>(), 1e-9) << row << ", " << c;
}

class ParetoGolden : public ::testing::Test {
protected:
    Json cases_ =
        parse_json(read_file(TUNE_SOURCE_DIR "/tests/tuner/golden/pareto.json").value()).value();
};

TEST_F(ParetoGolden, Ranks) {
    for (const Json& one : cases_) {
        const LossTable losses = table_of(one["losses"]);
        EXPECT_EQ(domination_ranks(losses, losses.rows()), integers(one["ranks"]));
        EXPECT_EQ(domination_ranks(losses, one["enough"].get<std::size_t>()),
                  integers(one["ranks_of_enough"]));
        const auto penalty = one["penalty"].get<std::vector<double>>();
        EXPECT_EQ(domination_ranks(losses, penalty), integers(one["constrained_ranks"]));
    }
}

TEST_F(ParetoGolden, VolumesAndSubsets) {
    for (const Json& one : cases_) {
        const LossTable losses = table_of(one["losses"]);
        const auto reference = one["reference"].get<std::vector<double>>();
        EXPECT_EQ(reference_point(losses), reference);
        const double volume = one["volume"].get<double>();
        EXPECT_NEAR(hypervolume(losses, reference), volume, 1e-11 * volume);
        const LossTable front = table_of(one["front"]);
        const std::vector<std::size_t> subset = integers(one["subset"]);
        EXPECT_EQ(select_by_hypervolume(front, reference_point(front), subset.size()), subset);
    }
}

TEST_F(ParetoGolden, CrowdingDistances) {
    for (const Json& one : cases_) {
        const LossTable front = table_of(one["front"]);
        const std::vector<double> distances = crowding_distances(front);
        ASSERT_EQ(distances.size(), one["crowding"].size());
        std::multiset<double> got;
        std::multiset<double> want;
        for (std::size_t i = 0; i < distances.size(); ++i) {
            // Of equal rows it depends on their order which one stands outside.
            got.insert(std::round(distances[i] * 1e9));
            want.insert(std::round(std::stod(one["crowding"][i].get<std::string>()) * 1e9));
        }
        EXPECT_EQ(got, want);
    }
}

TEST_F(ParetoGolden, ReferenceDirectionsAndNiches) {
    for (const Json& one : cases_) {
        const LossTable losses = table_of(one["losses"]);
        if (losses.rows() > 1) expect_near(normalized_losses(losses), one["normalized"]);
        const LossTable directions = reference_directions(losses.columns(), 4);
        std::set<std::vector<double>> got;
        for (std::size_t row = 0; row < directions.rows(); ++row)
            got.emplace(directions[row].begin(), directions[row].end());
        EXPECT_EQ(got.size(), directions.rows());
        std::set<std::vector<double>> want;
        for (const Json& row : one["directions"]) want.insert(row.get<std::vector<double>>());
        EXPECT_EQ(got, want);
    }
}

LossTable random_table(std::size_t rows, std::size_t columns, Draws& draws) {
    LossTable table(columns);
    std::vector<double> row(columns);
    for (std::size_t i = 0; i < rows; ++i) {
        for (double& cell : row) cell = std::floor(draws.next() * 8);
        table.add(row);
    }
    return table;
}

/// Counts the unit cells below 8 that some row dominates.
double counted_volume(const LossTable& losses) {
    double count = 0;
    const std::size_t columns = losses.columns();
    std::vector<double> cell(columns, 0);
    while (true) {
        for (std::size_t row = 0; row < losses.rows(); ++row) {
            bool covers = true;
            for (std::size_t c = 0; c < columns; ++c) covers = covers && losses[row][c] <= cell[c];
            if (!covers) continue;
            ++count;
            break;
        }
        std::size_t c = 0;
        while (c < columns && ++cell[c] == 8) cell[c++] = 0;
        if (c == columns) return count;
    }
}

TEST(Hypervolume, IsWhatCountingCellsGives) {
    Draws draws(5, 0, "volume");
    for (std::size_t columns = 1; columns <= 5; ++columns)
        for (std::size_t rows = 1; rows <= 12; ++rows) {
            const LossTable losses = random_table(rows, columns, draws);
            const std::vector<double> reference(columns, 8);
            EXPECT_DOUBLE_EQ(hypervolume(losses, reference), counted_volume(losses))
                << columns << " columns, " << rows << " rows";
        }
}

TEST(Hypervolume, OfNothingAndOfInfinity) {
    const LossTable none(2);
    EXPECT_EQ(hypervolume(none, std::vector<double>{1, 1}), 0);
    LossTable losses(2);
    losses.add(std::vector<double>{0, 0});
    EXPECT_EQ(hypervolume(losses, std::vector<double>{1, kInfinity}), kInfinity);
    losses.add(std::vector<double>{-kInfinity, 0.5});
    EXPECT_EQ(hypervolume(losses, std::vector<double>{1, 1}), kInfinity);
    losses.add(std::vector<double>{kInfinity, -1});
    EXPECT_EQ(select_by_hypervolume(losses, reference_point(losses), 2).size(), 2u);
}

TEST(Ranks, FollowTheDefinition) {
    Draws draws(6, 0, "ranks");
    for (std::size_t columns = 2; columns <= 4; ++columns) {
        const LossTable losses = random_table(60, columns, draws);
        const std::vector<std::size_t> ranks = domination_ranks(losses, losses.rows());
        for (std::size_t i = 0; i < losses.rows(); ++i) {
            std::size_t above = 0;  // the rank is one more than that of the worst dominator
            for (std::size_t j = 0; j < losses.rows(); ++j)
                if (dominates(losses[j], losses[i])) above = std::max(above, ranks[j] + 1);
            EXPECT_EQ(ranks[i], above);
        }
    }
}

TEST(Ranks, OfOneColumnAreThePlacesOfItsValues) {
    Draws draws(8, 0, "one column");
    LossTable losses = random_table(60, 1, draws);
    for (std::size_t row = 0; row < 60; row += 3) losses.add(losses[row]);  // equal ones
    for (const std::size_t enough : {0u, 1u, 7u, 60u, 1000u}) {
        const std::vector<std::size_t> ranks = domination_ranks(losses, enough);
        for (std::size_t i = 0; i < losses.rows(); ++i) {
            std::set<double> better;
            for (std::size_t j = 0; j < losses.rows(); ++j)
                if (losses[j][0] < losses[i][0]) better.insert(losses[j][0]);
            EXPECT_EQ(ranks[i], std::min(better.size(), enough)) << i << " of " << enough;
        }
    }
}

TEST(Selection, TakesWholeRanksAndNeverMoreThanAsked) {
    Draws draws(7, 0, "selection");
    for (const std::size_t count : {1u, 5u, 20u, 59u, 60u}) {
        Population population(3);
        population.losses = random_table(60, 3, draws);
        for (std::size_t i = 0; i < 60; ++i)
            population.violations.push_back(std::max(0.0, draws.next() - 0.7));
        const auto ranks = domination_ranks(population.losses, population.violations);
        for (const bool by_directions : {false, true}) {
            const auto chosen =
                by_directions
                    ? select_by_directions(population, count, reference_directions(3, 3), draws)
                    : select_by_crowding(population, count);
            ASSERT_EQ(chosen.size(), count);
            const std::set<std::size_t> distinct(chosen.begin(), chosen.end());
            EXPECT_EQ(distinct.size(), count);
            std::size_t worst = 0;
            for (const std::size_t row : chosen) worst = std::max(worst, ranks[row]);
            for (std::size_t row = 0; row < 60; ++row)
                EXPECT_TRUE(ranks[row] >= worst || distinct.contains(row));
        }
    }
}

TEST(Selection, TheOutermostAreNeverCrowded) {
    LossTable front(2);
    for (const double x : {0.5, 0.0, 0.52, 1.0, 0.54}) front.add(std::vector<double>{x, 1 - x});
    const std::vector<double> distances = crowding_distances(front);
    EXPECT_EQ(distances[1], kInfinity);
    EXPECT_EQ(distances[3], kInfinity);
    EXPECT_GT(distances[0], distances[2]);
    Population population(2);
    population.losses = front;
    population.violations.assign(5, 0);
    EXPECT_THAT(select_by_crowding(population, 3), ElementsAre(1, 3, 0));
}

TEST(Draws, AreUniformAndTheirOwn) {
    Draws draws(1, 2, "a");
    Draws again(1, 2, "a");
    Draws other(1, 2, "b");
    std::vector<int> counts(10, 0);
    int equal = 0;
    for (int i = 0; i < 20'000; ++i) {
        const double u = draws.next();
        EXPECT_EQ(u, again.next());
        equal += u == other.next() ? 1 : 0;
        ++counts[static_cast<std::size_t>(u * 10)];
    }
    EXPECT_EQ(equal, 0);
    double chi_square = 0;
    for (const int count : counts) chi_square += std::pow(count - 2000.0, 2) / 2000;
    EXPECT_LT(chi_square, 27.9) << "9 degrees of freedom, p = 0.001";
}

}  // namespace
}  // namespace tune::tuner::pareto_test
