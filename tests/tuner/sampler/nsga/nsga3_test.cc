// Who survives a generation of NSGA-III, step by step against Optuna 5.0.0 (golden/nsga3.json):
// reference directions, normalisation, association, and the chances of niching.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/system/file.h"
#include "tuner/sampler/nsga/nsga_selection.h"

namespace tune::tuner {
namespace {

double cell_of(const Json& cell) {
    if (cell.is_number()) return cell.get<double>();
    return cell == "inf" ? std::numeric_limits<double>::infinity()
                         : -std::numeric_limits<double>::infinity();
}

LossTable table_of(const Json& rows) {
    LossTable table(rows.at(0).size());
    for (const Json& row : rows) {
        std::vector<double> values;
        for (const Json& cell : row) values.push_back(cell_of(cell));
        table.add(values);
    }
    return table;
}

void expect_near(const LossTable& got, const LossTable& want, const std::string& what) {
    ASSERT_EQ(got.rows(), want.rows());
    for (std::size_t row = 0; row < got.rows(); ++row)
        for (std::size_t c = 0; c < got.columns(); ++c)
            EXPECT_NEAR(got[row][c], want[row][c], 1e-9) << what << ": " << row << ", " << c;
}

class Nsga3Golden : public ::testing::Test {
protected:
    Json golden_ =
        parse_json(read_file(TUNE_SOURCE_DIR "/tests/tuner/golden/nsga3.json").value()).value();
};

TEST_F(Nsga3Golden, DirectionsNormalisationAndAssociation) {
    for (const Json& one : golden_["cases"]) {
        const std::string kind = one["kind"];
        const LossTable losses = table_of(one["losses"]);
        const LossTable directions =
            reference_directions(losses.columns(), one["divisions"].get<std::size_t>());
        expect_near(directions, table_of(one["directions"]), kind + " directions");
        LossTable taken(losses.columns());
        for (const Json& row : one["order"]) taken.add(losses[row.get<std::size_t>()]);
        const LossTable normalized = normalized_losses(taken);
        expect_near(normalized, table_of(one["normalized"]), kind + " normalised");
        for (std::size_t row = 0; row < normalized.rows(); ++row) {
            const Niche niche = niche_of(normalized[row], directions);
            EXPECT_NEAR(niche.distance, one["distance"][row].get<double>(), 1e-9) << kind;
            // Where two directions are equally near, rounding decides.
            const Niche theirs = niche_of(normalized[row], [&] {
                LossTable alone(losses.columns());
                alone.add(directions[one["closest"][row].get<std::size_t>()]);
                return alone;
            }());
            EXPECT_NEAR(theirs.distance, niche.distance, 1e-9) << kind << ", row " << row;
        }
    }
}

TEST_F(Nsga3Golden, EachTrialSurvivesAsOftenAsInOptuna) {
    constexpr std::uint64_t kDraws = 4000;
    const auto theirs = golden_["draws"].get<double>();
    for (const Json& one : golden_["cases"]) {
        const std::string kind = one["kind"];
        Population population(one["losses"][0].size());
        population.losses = table_of(one["losses"]);
        population.violations = one["violations"].get<std::vector<double>>();
        const LossTable directions =
            reference_directions(population.losses.columns(), one["divisions"].get<std::size_t>());
        const auto count = one["count"].get<std::size_t>();
        std::vector<double> survived(population.losses.rows(), 0);
        for (std::uint64_t trial = 0; trial < kDraws; ++trial) {
            Draws draws(1, trial, "niching");
            for (const std::size_t row : select_by_directions(population, count, directions, draws))
                survived[row] += 1.0 / kDraws;
        }
        for (std::size_t row = 0; row < survived.size(); ++row) {
            const double chance = one["chances"][row].get<double>();
            const double mean = std::clamp(0.5 * (chance + survived[row]), 0.0, 1.0);
            const double error = std::sqrt(mean * (1 - mean) * (1 / theirs + 1.0 / kDraws));
            EXPECT_NEAR(survived[row], chance, 5 * error + 1e-9) << kind << ", row " << row;
        }
    }
}

}  // namespace
}  // namespace tune::tuner
