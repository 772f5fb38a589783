// Schedules as torch's, frozen parameters and batch sizes as Lightning's: vectors/rules.json, by
// make_rules.py.

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/system/file.h"
#include "worker/train/config/config.h"
#include "worker/train/rules/batch_size.h"
#include "worker/train/rules/freezing.h"

namespace tune::train {
namespace {

Json vectors(const char* name) {
    const auto text = read_file(TUNE_SOURCE_DIR "/tests/worker/train/vectors/rules.json");
    return parse_json(text.value()).value().at(name);
}

TEST(GoldenRules, SchedulesAreThoseOfTorch) {
    const Json cases = vectors("schedules");
    ASSERT_EQ(cases.size(), 16u);
    for (const Json& test : cases) {
        SCOPED_TRACE(to_text(test).substr(0, 80));
        TrainConfig config;
        ASSERT_TRUE(set_parameter(config, "schedule", test["schedule"].get<std::string>()));
        const auto rates = test["rates"].get<std::vector<double>>();
        const LearningRate rate{.base = test["lr"].get<double>(),
                                .effective = test["lr"].get<double>(),
                                .schedule = config.schedule,
                                .warmup_steps = test["warmup"].get<std::int64_t>(),
                                .total_steps = static_cast<std::int64_t>(rates.size()),
                                .floor = test.value("floor", 0.0),
                                .step_steps = test.value("steps", std::int64_t{1}),
                                .step_factor = test.value("factor", 1.0)};
        for (std::size_t step = 0; step < rates.size(); ++step)
            EXPECT_NEAR(rate.at(static_cast<std::int64_t>(step)), rates[step], 1e-12) << step;
    }
}

TEST(GoldenRules, ParametersAreTrainedFromTheEpochOfLightnings) {
    const Json cases = vectors("freezing");
    ASSERT_EQ(cases.size(), 3u);
    for (const Json& test : cases) {
        const Freezing freezing{test["freeze"].get<std::string>(),
                                *parse_unfreezing(test["unfreeze"].get<std::string>())};
        for (std::size_t epoch = 0; epoch < test["epochs"].size(); ++epoch) {
            std::vector<std::string> trained;
            for (const auto& name : test["names"].get<std::vector<std::string>>()) {
                const std::int64_t first = freezing.first_epoch(name);
                if (first != kNever && first <= static_cast<std::int64_t>(epoch))
                    trained.push_back(name);
            }
            EXPECT_EQ(trained, test["epochs"][epoch].get<std::vector<std::string>>())
                << test["freeze"] << " in epoch " << epoch;
        }
    }
}

/// Doubling is Lightning's mode "power"; the size that the memory model then adds lies between what
/// that finds and what fits, where "binsearch" needs as many tries again.
TEST(GoldenRules, BatchSizesAreAtLeastThoseOfLightning) {
    const Json cases = vectors("batch_sizes");
    ASSERT_EQ(cases.size(), 7u);
    for (const Json& test : cases) {
        const auto room = test["room"].get<std::int64_t>();
        const auto power = test["power"]["tried"].get<std::vector<std::int64_t>>();
        const auto search = test["binsearch"]["tried"].get<std::vector<std::int64_t>>();
        constexpr double kFixed = 1000.0;
        constexpr double kPerSample = 10.0;
        std::vector<std::int64_t> tried;
        const auto found = find_batch_size(
            {.first = test["first"].get<std::int64_t>(),
             .largest = power.back(),
             .memory_limit = kFixed + kPerSample * static_cast<double>(room),
             .stops_when_slower = false},
            [&](std::int64_t batch) -> Result<Probe> {
                tried.push_back(batch);
                return Probe{.batch = batch,
                             .fits = batch <= room,
                             .samples_per_s = 1.0,
                             .peak_bytes = kFixed + kPerSample * static_cast<double>(batch)};
            });
        ASSERT_TRUE(found) << found.error().message;
        ASSERT_GE(tried.size(), power.size()) << room;
        EXPECT_TRUE(std::equal(power.begin(), power.end(), tried.begin())) << room;
        EXPECT_LE(tried.size(), power.size() + 1) << room;
        EXPECT_LE(tried.size(), search.size() + 1) << room;
        EXPECT_GE(found->batch, test["power"]["found"].get<std::int64_t>()) << room;
        EXPECT_LE(found->batch, room);
        if (room == 1500) {
            EXPECT_GT(found->batch, 1024) << "the model adds to what doubling finds";
        }
    }
}

}  // namespace
}  // namespace tune::train
