// The incremental estimator against the formulas, against itself built anew, and across the
// instruction sets.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "tests/tuner/sampler/reference.h"
#include "tuner/sampler/tpe/parzen.h"
#include "tuner/sampler/tpe/score.h"

namespace tune::tuner {
namespace {

const std::vector<std::vector<std::string>> kSpaces = {
    {"x=0..1"},
    {"x=1e6..1000001", "y=1e-5..1e-1:log"},
    {"a=0..1", "b=1..10:int", "c=x,y,z", "d=1..4096:int:log", "e=0..2:0.125", "f=1e-3..1:log"},
    {"c=x,y,z", "d=p,q"},
    {"b=1..3:int", "c=1<2<3<4"},
    {"b=0..100000:int", "a=0..1"},
    {"b=0..1:int", "c=1<2"},
    {"b=0..2147483647:int", "d=1..2147483647:int:log", "a=1..5:int"},
};

/// The reference forms a cell's mass as a difference of two tails: of cells as narrow as in the
/// last space few digits are left.
double tolerance(std::size_t space) {
    return space + 1 == kSpaces.size() ? 1e-6 : 1e-9;
}

class Density : public ::testing::TestWithParam<std::size_t> {
protected:
    Density() : random_(static_cast<unsigned>(GetParam())) {
        for (const std::string& word : kSpaces[GetParam()]) axes_.push_back(axis_of(word));
    }

    std::vector<double> position() {
        std::vector<double> at;
        for (const Axis& axis : axes_) {
            const double u = std::uniform_real_distribution<double>(0, 1)(random_);
            if (axis.kind == Axis::Kind::kCategory) {
                at.push_back(std::floor(u * axis.categories));
                continue;
            }
            // Half of them crowd in one place, some on the bounds: ties and narrow gaps.
            const double v = u < 0.05 ? 0 : u > 0.95 ? 1 : u < 0.5 ? 0.4 + u / 50 : u;
            at.push_back(axis.position(axis.value(axis.low + v * axis.range)));
        }
        return at;
    }

    /// Compares the estimator with the formulas at a few points.
    void compare(const ParzenEstimator& estimator,
                 const std::map<std::uint64_t, std::vector<double>>& rows) {
        std::vector<std::vector<double>> ordered;
        for (const auto& [number, row] : rows) ordered.push_back(row);
        std::vector<double> points;
        constexpr std::size_t kPoints = 6;
        for (std::size_t c = 0; c < kPoints; ++c) {
            const std::vector<double> at = position();
            points.insert(points.end(), at.begin(), at.end());
        }
        std::vector<double> found(kPoints);
        estimator.log_density(points, found);
        for (std::size_t c = 0; c < kPoints; ++c) {
            const auto begin = points.begin() + static_cast<std::ptrdiff_t>(c * axes_.size());
            const std::vector<double> at(begin, begin + static_cast<std::ptrdiff_t>(axes_.size()));
            const double expected = reference_log_density(axes_, ordered, at);
            ASSERT_NEAR(found[c], expected,
                        tolerance(GetParam()) * std::max(1.0, std::abs(expected)))
                << rows.size() << " rows";
        }
    }

    std::mt19937 random_;
    std::vector<Axis> axes_;
};

TEST_P(Density, StaysExactThroughInsertionsAndRemovals) {
    ParzenEstimator estimator(axes_);
    std::map<std::uint64_t, std::vector<double>> rows;
    for (int round = 0; round < 400; ++round) {
        const std::uint64_t number = random_() % 1000;
        if (rows.contains(number)) {
            estimator.erase(number);
            rows.erase(number);
        } else {
            const std::vector<double> row = position();
            estimator.insert(number, row);
            rows[number] = row;
        }
        if (round < 30 || round % 25 == 0) compare(estimator, rows);
    }
    while (!rows.empty()) {
        estimator.erase(rows.begin()->first);
        rows.erase(rows.begin());
        if (rows.size() < 4 || rows.size() % 60 == 0) compare(estimator, rows);
    }
}

TEST_P(Density, HasTheSameBitsWhateverTheOrderOfEvents) {
    std::map<std::uint64_t, std::vector<double>> rows;
    for (std::uint64_t number = 0; number < 150; ++number) rows[number] = position();
    ParzenEstimator ascending(axes_);
    for (const auto& [number, row] : rows) ascending.insert(number, row);
    ParzenEstimator shuffled(axes_);
    std::vector<std::uint64_t> order(150);
    for (std::uint64_t i = 0; i < 150; ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random_);
    for (const std::uint64_t number : order) {
        shuffled.insert(number, rows[number]);
        if (number % 3 != 0) continue;
        shuffled.erase(number);
        shuffled.insert(number, rows[number]);
    }
    for (int i = 0; i < 50; ++i) {
        const std::vector<double> at = position();
        double first = 0;
        double second = 0;
        ascending.log_density(at, {&first, 1});
        shuffled.log_density(at, {&second, 1});
        ASSERT_EQ(first, second);
    }
}

/// What is kept from ask to ask, masses by class of kernel, is what a new estimator computes.
TEST_P(Density, HasTheSameBitsAsOneBuiltAnewHoweverOftenItWasAsked) {
    for (const Floor floor : {Floor::kOptuna, Floor::kNarrow}) {
        ParzenEstimator asked(axes_, Weights::kAge, floor);
        std::map<std::uint64_t, std::vector<double>> rows;
        std::vector<double> points;
        for (int c = 0; c < 24; ++c) {
            const std::vector<double> at = position();
            points.insert(points.end(), at.begin(), at.end());
        }
        std::vector<double> kept(24);
        std::vector<double> anew(24);
        std::uint64_t first = 0;
        for (std::uint64_t round = 0; round < 700; ++round) {
            const std::uint64_t number = first + random_() % 900;
            if (rows.contains(number)) {
                asked.erase(number);
                rows.erase(number);
            } else {
                asked.insert(number, rows[number] = position());
            }
            if (round % 250 == 249) {
                first += 300;
                asked.erase_before(first);
                rows.erase(rows.begin(), rows.lower_bound(first));
            }
            asked.log_density(points, kept);
            if (round % 20 != 19 && round > 10) continue;
            ParzenEstimator other(axes_, Weights::kAge, floor);
            for (const auto& [key, row] : rows) other.insert(key, row);
            other.log_density(points, anew);
            ASSERT_EQ(kept, anew) << "round " << round;
        }
    }
}

TEST_P(Density, HasTheSameBitsOnEveryInstructionSet) {
    ParzenEstimator estimator(axes_);
    for (std::uint64_t number = 0; number < 333; ++number) estimator.insert(number, position());
    std::vector<double> points;
    for (int c = 0; c < 24; ++c) {
        const std::vector<double> at = position();
        points.insert(points.end(), at.begin(), at.end());
    }
    std::vector<std::vector<double>> found;
    for (const char* variant : score_variants()) {
        use_score_variant(variant);
        found.emplace_back(24);
        estimator.log_density(points, found.back());
        EXPECT_EQ(found.back(), found.front()) << variant;
    }
    use_score_variant(score_variants().front());
}

INSTANTIATE_TEST_SUITE_P(Spaces, Density, ::testing::Range<std::size_t>(0, kSpaces.size()));

}  // namespace
}  // namespace tune::tuner
