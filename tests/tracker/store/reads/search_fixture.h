#pragma once
// A store whose runs are searched; answers as words.

#include <string>

#include "tests/tracker/store/store_fixture.h"

namespace tune::tracker {

class RunSearchTest : public StoreTest {
protected:
    /// The ids of the page's runs in their order, or the refusal.
    std::string ids(SearchRuns query) {
        if (query.experiment_ids.empty()) query.experiment_ids = {0};
        const auto page = store_->search_runs(query);
        if (!page) return text_of(page);
        std::string out;
        for (const Run& one : page->items) out += (out.empty() ? "" : " ") + one.info.run_id;
        return out;
    }
    std::string where(const std::string& filter) { return ids({.filter = filter}); }
    std::string by(const std::string& key) { return ids({.order_by = {key}}); }
};

}  // namespace tune::tracker
