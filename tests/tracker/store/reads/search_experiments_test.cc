#include "base/limits.h"
#include "tests/tracker/store/store_fixture.h"

namespace tune::tracker {
namespace {

class SearchExperimentsTest : public StoreTest {
protected:
    std::string names(const SearchExperiments& query) {
        const auto page = store_->search_experiments(query);
        if (!page) return text_of(page);
        std::string out;
        for (const Experiment& one : page->items) out += (out.empty() ? "" : " ") + one.name;
        return out;
    }

    void create(const std::string& name, std::vector<Tag> tags = {}) {
        clock_.advance_ms(10);
        run<ExperimentId>(CreateExperiment{.name = name, .tags = std::move(tags)});
    }
};

TEST_F(SearchExperimentsTest, FiltersAndOrders) {
    create("Alpha", {{"team", "x"}});
    create("beta", {{"team", "y"}});
    create("Beta2");
    run(DeleteExperiment{3});
    EXPECT_EQ(names({}), "beta Alpha Default");
    EXPECT_EQ(names({.view_type = ViewType::kDeletedOnly}), "Beta2");
    EXPECT_EQ(names({.view_type = ViewType::kAll}), "Beta2 beta Alpha Default");
    EXPECT_EQ(names({.filter = "name LIKE 'b%'"}), "beta");
    EXPECT_EQ(names({.filter = "name ILIKE 'B%'", .view_type = ViewType::kAll}), "Beta2 beta");
    EXPECT_EQ(names({.filter = "name != 'beta'"}), "Alpha Default");
    EXPECT_EQ(names({.filter = "tags.team = 'x'"}), "Alpha");
    EXPECT_EQ(names({.filter = "tags.team != 'x'"}), "beta");
    EXPECT_EQ(names({.filter = "tags.team IS NULL"}), "Default");
    EXPECT_EQ(names({.filter = "tags.team IS NOT NULL"}), "beta Alpha");
    EXPECT_EQ(names({.filter = "experiment_id IN ('0', '2')"}), "beta Default");
    EXPECT_EQ(names({.filter = "experiment_id != '0'"}), "beta Alpha");
    EXPECT_EQ(names({.filter = "creation_time > 1010"}), "beta");
    EXPECT_EQ(names({.order_by = {"name"}}), "Alpha Default beta");
    EXPECT_EQ(names({.order_by = {"name DESC"}}), "beta Default Alpha");
    EXPECT_EQ(names({.order_by = {"creation_time ASC"}}), "Default Alpha beta");
    EXPECT_EQ(names({.order_by = {"experiment_id"}}), "Default Alpha beta");
}

TEST_F(SearchExperimentsTest, TiesAreBrokenAsInMlflow) {
    for (const char* name : {"a", "b", "c"}) run<ExperimentId>(CreateExperiment{.name = name});
    EXPECT_EQ(names({}), "Default a b c");
    EXPECT_EQ(names({.order_by = {"creation_time"}}), "c b a Default");
}

TEST_F(SearchExperimentsTest, PagesJoinToTheWhole) {
    for (int i = 0; i < 20; ++i) create("e" + std::to_string(i));
    std::string joined;
    SearchExperiments query{.max_results = 6};
    do {
        const auto page = store_->search_experiments(query);
        ASSERT_TRUE(page);
        for (const Experiment& one : page->items) joined += (joined.empty() ? "" : " ") + one.name;
        query.page_token = page->next_page_token;
    } while (!query.page_token.empty());
    EXPECT_EQ(joined, names({}));
    // Exactly as many as there are: no token.
    EXPECT_EQ(store_->search_experiments({.max_results = 21})->next_page_token, "");
}

TEST_F(SearchExperimentsTest, RefusesBadQueries) {
    EXPECT_EQ(names({.max_results = 0}),
              "INVALID_PARAMETER_VALUE: Invalid value 0 for parameter 'max_results' supplied. It "
              "must be a positive integer");
    EXPECT_EQ(names({.max_results = kSearchResultsMax + 1}),
              "INVALID_PARAMETER_VALUE: Invalid value 50001 for parameter 'max_results' supplied. "
              "It must be at most 50000");
    EXPECT_EQ(names({.page_token = "!"}),
              "INVALID_PARAMETER_VALUE: Invalid page token, could not base64-decode");
    EXPECT_EQ(names({.filter = "bad"}),
              "INVALID_PARAMETER_VALUE: Invalid clause(s) in filter string: bad");
}

}  // namespace
}  // namespace tune::tracker
