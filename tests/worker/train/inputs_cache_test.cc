#include "worker/train/inputs_cache.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/system/file.h"
#include "tests/worker/train/data_set.h"

namespace tune::train {
namespace {

const std::vector<std::pair<std::string, std::string>> kCachedColumns = {{"x", "float64"},
                                                                         {"label", "int"}};

class InputsCache : public ::testing::Test {
protected:
    void SetUp() override {
        write("train", 1.0);
        config_.data = data_.path();
        config_.statistics_cache = data_.path() / "cache";
    }

    void write(const std::string& split, double first) {
        data_.write(split, kCachedColumns, {{first, std::int64_t{0}}, {3.0, std::int64_t{2}}});
    }

    /// Counts how often data are really measured.
    Inputs get() {
        const auto dataset = data_.open(config_.train_split, 2);
        auto chosen = choose_inputs(config_, dataset->columns());
        EXPECT_TRUE(chosen);
        auto inputs = cached_inputs(config_, *dataset, *chosen, [&](Inputs own) -> Result<Inputs> {
            ++measured_;
            TUNE_TRY_VOID(measure_inputs(config_, *dataset, own));
            return own;
        });
        EXPECT_TRUE(inputs) << inputs.error().message;
        return *std::move(inputs);
    }

    [[nodiscard]] std::filesystem::path only_file() const {
        std::filesystem::path found;
        for (const auto& entry : std::filesystem::directory_iterator(config_.statistics_cache))
            if (entry.path().extension() == ".json") found = entry.path();
        return found;
    }

    DataSet data_;
    TrainConfig config_;
    int measured_ = 0;
};

TEST_F(InputsCache, MeasuresOnce) {
    const Inputs first = get();
    EXPECT_EQ(first.columns[0].mean, 2.0);
    EXPECT_EQ(first.classes, 3);
    EXPECT_EQ(to_text(get().to_json()), to_text(first.to_json()));
    config_.seed = 7;
    config_.lr = 0.5;
    EXPECT_EQ(to_text(get().to_json()), to_text(first.to_json()));
    EXPECT_EQ(measured_, 1);
}

TEST_F(InputsCache, OtherQuestionsAndOtherDataAreMeasuredAnew) {
    static_cast<void>(get());
    config_.normalize = Normalize::kNone;
    EXPECT_EQ(get().columns[0].mean, 0.0);
    EXPECT_EQ(measured_, 2);
    config_.normalize = Normalize::kStandard;
    std::filesystem::remove_all(data_.path() / "train");
    write("train", 5.0);  // the same size, other numbers
    EXPECT_EQ(get().columns[0].mean, 4.0);
    EXPECT_EQ(measured_, 3);
}

TEST_F(InputsCache, ADamagedFileIsMadeAnew) {
    static_cast<void>(get());
    for (const char* damaged : {"", "{", "{\"key\": 3}", "[]"}) {
        ASSERT_TRUE(write_file_atomic(only_file(), damaged));
        EXPECT_EQ(get().columns[0].mean, 2.0) << damaged;
    }
    EXPECT_EQ(measured_, 5);
    static_cast<void>(get());
    EXPECT_EQ(measured_, 5);
}

TEST_F(InputsCache, WithoutAFolderEachMeasures) {
    config_.statistics_cache = "none";
    static_cast<void>(get());
    static_cast<void>(get());
    EXPECT_EQ(measured_, 2);
    config_.statistics_cache = "/proc/nothing/can/be/made/here";
    static_cast<void>(get());
    EXPECT_EQ(measured_, 3);
}

TEST_F(InputsCache, ProcessesThatAskAtOnceMeasureOnce) {
    constexpr int kProcesses = 8;
    std::vector<pid_t> children;
    for (int i = 0; i < kProcesses; ++i) {
        const pid_t child = fork();
        if (child == 0) _exit(get().columns[0].mean == 2.0 ? measured_ : 100);
        children.push_back(child);
    }
    int measured = 0;
    for (const pid_t child : children) {
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFEXITED(status));
        measured += WEXITSTATUS(status);
    }
    EXPECT_EQ(measured, 1);
}

}  // namespace
}  // namespace tune::train
