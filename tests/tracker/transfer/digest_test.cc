#include "tracker/transfer/digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/tracker/transfer/example_run.h"

namespace tune::tracker {
namespace {

std::string digest(const SourceRun& run, const std::vector<Point>& points) {
    RunDigest out;
    out.add("m", points);
    return out.finish(run);
}

TEST(RunDigest, DoesNotDependOnOrderOrPieces) {
    std::vector<Point> points;
    for (int i = 0; i < 1000; ++i) points.push_back({i, i / 2, i * 0.5});
    const std::string whole = digest(example_run(), points);
    std::shuffle(points.begin(), points.end(), std::mt19937(3));
    RunDigest pieces;
    const std::span<const Point> all = points;
    pieces.add("m", all.subspan(500));
    pieces.add("m", all.first(500));
    SourceRun other = example_run();
    std::swap(other.run.params[0], other.run.params[1]);
    EXPECT_EQ(pieces.finish(other), whole);
    EXPECT_EQ(pieces.point_count(), 1000u);
}

TEST(RunDigest, SeesEveryChangeOfAPoint) {
    const std::vector<Point> points = {{1, 2, 3.0}, {4, 5, 6.0}};
    const std::string whole = digest(example_run(), points);
    std::vector<std::vector<Point>> changed = {
        {{1, 2, 3.0}},
        {{1, 2, 3.0}, {4, 5, 6.0}, {4, 5, 6.0}},
        {{2, 1, 3.0}, {4, 5, 6.0}},
        {{1, 2, 6.0}, {4, 5, 3.0}},
        {{1, 2, std::nextafter(3.0, 4.0)}, {4, 5, 6.0}},
        {{1, 2, std::nan("")}, {4, 5, 6.0}},
        {{1, 5, 3.0}, {4, 2, 6.0}},
    };
    for (const auto& other : changed) EXPECT_NE(digest(example_run(), other), whole);
    RunDigest other_key;
    other_key.add("n", points);
    EXPECT_NE(other_key.finish(example_run()), whole);
}

TEST(RunDigest, NanIsOneValueAndZeroHasNoSign) {
    EXPECT_EQ(digest(example_run(), {{1, 1, std::nan("1")}}),
              digest(example_run(), {{1, 1, -std::nan("")}}));
    EXPECT_EQ(digest(example_run(), {{1, 1, -0.0}}), digest(example_run(), {{1, 1, 0.0}}));
    EXPECT_NE(digest(example_run(), {{1, 1, std::nan("")}}), digest(example_run(), {{1, 1, 0.0}}));
}

TEST(RunDigest, SeesEveryFieldButPlaceAndExperiment) {
    const std::string whole = digest(example_run(), {});
    SourceRun same = example_run();
    same.run.info.experiment_id = 7;
    same.run.info.artifact_uri = "elsewhere";
    EXPECT_EQ(digest(same, {}), whole);
    std::vector<SourceRun> changed(8, example_run());
    changed[0].run.info.status = RunStatus::kFailed;
    changed[1].run.info.end_time_ms = 0;
    changed[2].deleted_time_ms = 5;
    changed[3].run.params[0] = {"a1", ""};
    changed[4].run.tags.clear();
    changed[5].run.model_outputs[0].step = 4;
    changed[6].run.dataset_inputs.push_back({{"n", "d", "t", "s", {}, {}}, {}});
    changed[7].run.info.lifecycle_stage = LifecycleStage::kDeleted;
    for (const SourceRun& run : changed) EXPECT_NE(digest(run, {}), whole);
    SourceRun empty_schema = changed[6];
    empty_schema.run.dataset_inputs[0].dataset.schema = "";
    EXPECT_NE(digest(empty_schema, {}), digest(changed[6], {}));
}

TEST(KeepEachPointOnce, SortsAndDropsExactRepeats) {
    std::vector<Point> points = {
        {5, 2, 1}, {1, 0, std::nan("")}, {5, 2, 1}, {1, 0, std::nan("")}, {1, 0, 0}};
    keep_each_point_once(points);
    ASSERT_EQ(points.size(), 3u);
    EXPECT_EQ(points[2].timestamp_ms, 5);
}

}  // namespace
}  // namespace tune::tracker
