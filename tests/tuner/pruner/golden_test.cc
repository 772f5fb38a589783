// Decisions of Optuna 5.0.0 replayed; tests/tuner/golden/make_pruner_golden.py wrote the file.

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "base/system/file.h"
#include "tuner/config/study_config.h"
#include "tuner/pruner/pruner.h"

namespace tune::tuner {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Pruner::End end_of(const std::string& how) {
    if (how == "complete") return Pruner::End::kComplete;
    return how == "pruned" ? Pruner::End::kPruned : Pruner::End::kGone;
}

TEST(PrunerGolden, EveryDecisionIsOptunas) {
    const Json golden =
        parse_json(read_file(TUNE_SOURCE_DIR "/tests/tuner/golden/pruners.json").value()).value();
    std::size_t reports = 0;
    std::size_t pruned = 0;
    for (const Json& one : golden.at("cases")) {
        const Json study = {{"pruner", one.at("pruner")}};
        const StudyConfig config = study_config_from_json(study).value();
        const auto pruner = make_pruner(
            config.pruner, one.at("goal") == "min" ? Goal::kMinimize : Goal::kMaximize, "golden");
        for (const Json& event : one.at("events")) {
            const auto number = event.at(1).get<std::uint64_t>();
            if (event.at(0) == "end") {
                pruner->finish(number, end_of(event.at(2).get<std::string>()),
                               event.size() > 3 ? event.at(3).get<double>() : kNaN);
                continue;
            }
            const double value = event.at(3).is_string() ? kNaN : event.at(3).get<double>();
            const bool expected = event.at(4).get<bool>();
            const Verdict verdict = pruner->report(number, event.at(2).get<std::int64_t>(), value);
            ASSERT_EQ(verdict == Verdict::kPrune, expected)
                << one.at("pruner") << " " << one.at("goal") << " " << event;
            ++reports;
            pruned += expected ? 1 : 0;
        }
    }
    EXPECT_GT(reports, 1000u);
    EXPECT_GT(pruned, 100u);
}

}  // namespace
}  // namespace tune::tuner
