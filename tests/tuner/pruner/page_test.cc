// The pruner that docs/adding_a_pruner.md adds: the build takes it out of the page.

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "tuner/pruner/pruner_kind.h"

namespace tune::tuner {

const PrunerKind& plateau_pruner();

namespace {

bool prunes(Pruner& pruner, std::int64_t step, double value) {
    return pruner.report(0, step, value) == Verdict::kPrune;
}

TEST(AddingAPruner, ThePagesPrunerStopsAPlateau) {
    const PrunerKind& kind = plateau_pruner();
    const auto pruner = kind.make(PrunerConfig(kind), {});
    EXPECT_FALSE(prunes(*pruner, 1, 0.5)) << "too few reports";
    EXPECT_FALSE(prunes(*pruner, 2, 0.5));
    EXPECT_FALSE(prunes(*pruner, 3, 0.4));
    EXPECT_FALSE(prunes(*pruner, 4, 0.4)) << "it still moves";
    EXPECT_FALSE(prunes(*pruner, 5, 0.4));
    EXPECT_TRUE(prunes(*pruner, 6, 0.401)) << "four that hardly differ";
    EXPECT_FALSE(prunes(*pruner, 7, std::numeric_limits<double>::quiet_NaN()))
        << "NaN is no plateau";
}

TEST(AddingAPruner, ThePagesOptionsAreRows) {
    const PrunerKind& kind = plateau_pruner();
    EXPECT_EQ(kind.name, "plateau");
    EXPECT_EQ(kind.options.names(), (std::vector<std::string>{"std", "reports", "warmup"}));
    Json json = Json::object();
    const PrunerConfig config(kind);
    kind.options.write(config.address(), json);
    EXPECT_EQ(json["reports"], 4);
}

}  // namespace
}  // namespace tune::tuner
