// The pure rules: batch size, gradient noise scale, freezing, the best epochs.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "base/id.h"
#include "worker/train/progress.h"
#include "worker/train/rules/batch_size.h"
#include "worker/train/rules/freezing.h"
#include "worker/train/rules/noise_scale.h"
#include "worker/train/step/memory_limit.h"

namespace tune::train {
namespace {

TEST(MemoryModel, IsALineWithAMargin) {
    const MemoryModel model = MemoryModel::through(8, 1080.0, 16, 1160.0);
    EXPECT_DOUBLE_EQ(model.per_sample, 10.0);
    EXPECT_DOUBLE_EQ(model.fixed, 1000.0);
    EXPECT_EQ(model.largest_batch(5000.0, 0.08), 360) << "(4600 - 1000) / 10";
    EXPECT_EQ(model.largest_batch(4700.0, 0.08), 328) << "332.4 as a multiple of 8";
    EXPECT_EQ(model.largest_batch(1150.0, 0.08), 5);
    EXPECT_EQ(model.largest_batch(1000.0, 0.08), 0);
}

TEST(MemoryLimit, IsTheSmallestOfTheGroupsAround) {
    const std::filesystem::path root =
        std::filesystem::temp_directory_path() / ("cgroup." + random_hex(6));
    const auto write = [](const std::filesystem::path& path, const char* text) {
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
    };
    write(root / "membership", "12:cpu:/elsewhere\n0::/agent/trial.7\n");
    write(root / "fs/agent/trial.7/memory.max", "max\n");
    const auto limit = [&] { return cgroup_memory_limit(root / "membership", root / "fs"); };
    EXPECT_FALSE(limit());
    write(root / "fs/agent/memory.max", "3000000\n");
    EXPECT_EQ(limit(), 3e6);
    write(root / "fs/agent/trial.7/memory.max", "2000000\n");
    EXPECT_EQ(limit(), 2e6);
    write(root / "fs/memory.max", "1000000\n");
    EXPECT_EQ(limit(), 1e6) << "of a container";
    EXPECT_FALSE(cgroup_memory_limit(root / "none", root / "none"));
    std::filesystem::remove_all(root);
}

TEST(MemoryLimit, HeedsWhatTheAgentGave) {
    ASSERT_EQ(setenv("TUNE_MEMORY_BYTES", "12345678", 1), 0);
    EXPECT_EQ(host_memory_limit(), 12345678.0);
    for (const char* text : {"", "many", "-5", "0"}) {
        ASSERT_EQ(setenv("TUNE_MEMORY_BYTES", text, 1), 0);
        EXPECT_GT(host_memory_limit(), 12345678.0) << text;
    }
    ASSERT_EQ(unsetenv("TUNE_MEMORY_BYTES"), 0);
}

/// A machine with so much memory and so many samples a second; counts what it is asked.
struct Machine {
    double limit = 1e12;
    double fixed = 1000.0;
    double per_sample = 10.0;
    double fastest = 64.0;  ///< larger batches gain nothing
    std::vector<std::int64_t> tried = {};

    Result<Probe> operator()(std::int64_t batch) {
        tried.push_back(batch);
        const double peak = fixed + per_sample * static_cast<double>(batch);
        return Probe{.batch = batch,
                     .fits = peak <= limit,
                     .samples_per_s = std::min(static_cast<double>(batch), fastest),
                     .peak_bytes = peak};
    }
};

TEST(FindBatchSize, StopsWhereSpeedStopsRising) {
    Machine machine;
    const auto best = find_batch_size({}, std::ref(machine));
    ASSERT_TRUE(best);
    EXPECT_EQ(best->batch, 64);
    EXPECT_EQ(machine.tried, (std::vector<std::int64_t>{8, 16, 32, 64, 128}));
}

TEST(FindBatchSize, FillsMemoryByTheModel) {
    Machine machine{.limit = 6000.0};  // 500 samples
    const auto best =
        find_batch_size({.memory_limit = 6000.0, .stops_when_slower = false}, std::ref(machine));
    ASSERT_TRUE(best);
    EXPECT_EQ(best->batch, 448) << "(6000 * 0.92 - 1000) / 10 = 452";
    EXPECT_EQ(machine.tried.back(), 448);
    EXPECT_EQ(machine.tried.size(), 8u) << "8 to 512, and the one that is predicted";
}

TEST(FindBatchSize, WithoutALimitTriesTheMiddle) {
    Machine machine{.limit = 6000.0};
    const auto best = find_batch_size({.stops_when_slower = false}, std::ref(machine));
    ASSERT_TRUE(best);
    EXPECT_EQ(best->batch, 384);
}

TEST(FindBatchSize, GoesDownFromAFirstSizeThatIsTooLarge) {
    Machine machine{.limit = 1055.0};  // 5 samples
    const auto best = find_batch_size({.first = 64, .stops_when_slower = false}, std::ref(machine));
    ASSERT_TRUE(best);
    EXPECT_EQ(best->batch, 4);
    Machine tiny{.limit = 1005.0};
    const auto none = find_batch_size({}, std::ref(tiny));
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, Code::kResourceExhausted);
    EXPECT_EQ(tiny.tried, (std::vector<std::int64_t>{8, 4, 2, 1}));
}

TEST(FindBatchSize, TriesTheLargestAndNoMore) {
    Machine machine{.fastest = 1e9};
    const auto best = find_batch_size({.largest = 100}, std::ref(machine));
    ASSERT_TRUE(best);
    EXPECT_EQ(best->batch, 100);
    const auto failed = find_batch_size({}, [](std::int64_t) -> Result<Probe> {
        return Error{Code::kInternalError, "no device"};
    });
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().message, "no device");
}

/// Gradients of known noise: mean 1 in each of 100 numbers, variance 50 a sample, so tr(Sigma) is
/// 5,000 and |G|^2 is 100.
TEST(NoiseScale, FindsTheNoiseOfKnownGradients) {
    std::mt19937_64 random(3);
    std::normal_distribution<double> normal;
    NoiseScale noise;
    double sum = 0;
    constexpr int kSteps = 2000;
    for (int step = 0; step < kSteps; ++step) {
        NoiseSample sample{.big_batch = 32, .parts = 2};
        std::vector<double> halves[2];
        for (auto& half : halves) {
            for (int i = 0; i < 100; ++i)
                half.push_back(1.0 + normal(random) * std::sqrt(50.0 / 16.0));
            for (const double g : half) sample.small_square += g * g;
        }
        for (std::size_t i = 0; i < 100; ++i)
            sample.big_square += std::pow((halves[0][i] + halves[1][i]) / 2.0, 2);
        noise.add(sample);
        if (step >= 100) sum += *noise.value() / (kSteps - 100);
    }
    EXPECT_NEAR(sum, 50.0, 2.5);
}

TEST(NoiseScale, GoesOnFromItsState) {
    NoiseScale whole;
    NoiseScale first;
    EXPECT_FALSE(whole.value());
    for (int i = 1; i < 5; ++i) {
        const NoiseSample sample{2.0 * (1.0 + i), 0.9 + 0.8 * i, 16, 2};
        whole.add(sample);
        if (i < 3) first.add(sample);
    }
    NoiseScale second;
    second.load_state(first.state());
    for (int i = 3; i < 5; ++i) second.add({2.0 * (1.0 + i), 0.9 + 0.8 * i, 16, 2});
    second.add({1.0, 1.0, 8, 1});  // one part tells nothing
    EXPECT_EQ(second.value(), whole.value());
    ASSERT_TRUE(whole.value());
}

TEST(NoiseScale, Advises) {
    EXPECT_EQ(noise_advice(1000, 100),
              "gradient noise scale 1000 samples, batch 100 is 0.1 times that: twice the batch "
              "takes nearly half the steps");
    EXPECT_NE(noise_advice(100, 100).find("saves steps and costs samples"), std::string::npos);
    EXPECT_NE(noise_advice(10, 100).find("a smaller batch"), std::string::npos);
    const auto ends = [](const std::string& text, const char* end) { return text.ends_with(end); };
    const DeviceUse little{.peak_bytes = 3e9, .total_bytes = 80e9, .samples_per_s = 1234.4};
    EXPECT_TRUE(ends(noise_advice(1000, 100, little),
                     "; 1234 samples/s; at most 3 of 80 GB were in use: twice the batch fits"));
    EXPECT_TRUE(ends(noise_advice(1000, 100, {.peak_bytes = 60e9, .total_bytes = 80e9}),
                     "; at most 60 of 80 GB were in use: twice the batch may not fit"));
    EXPECT_TRUE(ends(noise_advice(1000, 100, {.wait_share = 0.4}),
                     "; 40 % of the time went by waiting for data, which no batch size changes"));
}

TEST(Freezing, FollowsPatternsAndEpochs) {
    const Freezing freezing{"^(conv1|layer)", *parse_unfreezing("3:^layer4,6:.")};
    EXPECT_EQ(freezing.first_epoch("fc.weight"), 0);
    EXPECT_EQ(freezing.first_epoch("layer4.0.conv1.weight"), 3);
    EXPECT_EQ(freezing.first_epoch("conv1.weight"), 6);
    EXPECT_EQ((Freezing{"conv", {}}.first_epoch("conv1.weight")), kNever);
    EXPECT_EQ((Freezing{}.first_epoch("conv1.weight")), 0);
}

TEST(Freezing, SaysWhatIsWrong) {
    for (const char* text : {"layer4", ":layer4", "-1:x", "3:", "3x:a", "1:a,"}) {
        const auto parsed = parse_unfreezing(text);
        if (std::string(text) == "1:a,") {
            EXPECT_TRUE(parsed) << "a comma at the end is no entry";
            continue;
        }
        ASSERT_FALSE(parsed) << text;
        EXPECT_NE(parsed.error().message.find("is not EPOCH:REGEX"), std::string::npos);
    }
    EXPECT_FALSE(parse_unfreezing("1:["));
    EXPECT_FALSE(check_pattern("freeze", "(a"));
    EXPECT_TRUE(check_pattern("freeze", ""));
}

TEST(Freezing, LayersOfNames) {
    const std::vector<std::string> names = {"conv1.weight",
                                            "bn1.weight",
                                            "bn1.bias",
                                            "layer1.0.conv1.weight",
                                            "layer1.0.bn1.weight",
                                            "layer1.1.conv1.weight",
                                            "fc.weight",
                                            "fc.bias"};
    EXPECT_EQ(layers_of(names), (std::vector<std::size_t>{0, 1, 1, 2, 2, 3, 4, 4}));
    EXPECT_EQ(layers_of({"0.weight", "0.bias", "3.weight"}), (std::vector<std::size_t>{0, 0, 1}));
    EXPECT_EQ(layers_of({"encoder.layers.0.norm1.weight", "encoder.layers.1.norm1.weight"}),
              (std::vector<std::size_t>{0, 1}));
    EXPECT_EQ(layer_factors({"0.weight", "0.bias", "3.weight"}, 0.5),
              (std::vector<double>{0.5, 0.5, 1.0}));
}

std::vector<std::int64_t> ranked(std::vector<double> values, Mode mode, std::size_t count,
                                 std::int64_t chosen = 0) {
    std::vector<RankedEpoch> epochs;
    for (std::size_t i = 0; i < values.size(); ++i)
        rank_epoch(epochs, {static_cast<std::int64_t>(i) + 1, values[i]}, mode, count, chosen);
    std::vector<std::int64_t> numbers;
    for (const RankedEpoch& each : epochs) numbers.push_back(each.epoch);
    return numbers;
}

TEST(BestEpochs, AreTheBestByTheMetricAndItsDirection) {
    using Numbers = std::vector<std::int64_t>;
    EXPECT_EQ(ranked({5, 3, 4, 1, 2}, Mode::kMin, 3), (Numbers{4, 5, 2}));
    EXPECT_EQ(ranked({5, 3, 4, 1, 2}, Mode::kMax, 2), (Numbers{1, 3}));
    EXPECT_EQ(ranked({2, 1, 1, 1}, Mode::kMin, 2), (Numbers{2, 3})) << "of equal ones the earlier";
    EXPECT_EQ(ranked({2, 1}, Mode::kMin, 5), (Numbers{2, 1}));
    EXPECT_EQ(ranked({}, Mode::kMin, 2), Numbers{});
    // What a rule has chosen stays, whatever its value.
    EXPECT_EQ(ranked({9, 3, 4, 1}, Mode::kMin, 2, 1), (Numbers{4, 1}));
}

TEST(BestEpochs, ArePartOfTheProgress) {
    Progress progress;
    EXPECT_FALSE(progress.to_json().contains("best_epochs")) << "not of a run that keeps one";
    progress.best_epochs = {{7, 0.25}, {3, 0.5}};
    const auto read = Progress::from_json(progress.to_json());
    ASSERT_TRUE(read);
    ASSERT_EQ(read->best_epochs.size(), 2u);
    EXPECT_EQ(read->best_epochs[1].epoch, 3);
    EXPECT_EQ(read->best_epochs[1].value, 0.5);
}

}  // namespace
}  // namespace tune::train
