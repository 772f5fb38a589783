// Random filters with AND, OR, NOT and parentheses over random runs: what the SQL finds against an
// evaluator that knows nothing of SQL; and pages of searches while others write.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "tests/tracker/store/store_fixture.h"

namespace tune::tracker::search_property_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// TUNE_SEQUENCES: filters to try; some hundred are a second.
int filter_count() {
    const char* text = std::getenv("TUNE_SEQUENCES");
    return text == nullptr ? 300 : std::atoi(text);
}

/// What the evaluator knows of a run.
struct Known {
    std::string id;
    std::map<std::string, std::vector<double>> metrics;  // in the order of steps
    std::map<std::string, std::string> params;
    std::map<std::string, std::string> tags;
    std::int64_t start_time_ms = 0;
    std::optional<std::int64_t> end_time_ms;
};

double least(const std::vector<double>& values) {
    double found = kNan;
    for (const double value : values) found = std::fmin(found, value);
    return found;
}

double greatest(const std::vector<double>& values) {
    double found = kNan;
    for (const double value : values) found = std::fmax(found, value);
    return found;
}

bool compare(double left, const std::string& comparator, double right) {
    if (comparator == "=") return left == right;
    if (comparator == "!=") return !(left == right);
    if (comparator == "<") return left < right;
    if (comparator == "<=") return left <= right;
    if (comparator == ">") return left > right;
    return left >= right;
}

/// Either a text and what it means, drawn together.
struct Filter {
    std::string text;
    std::function<bool(const Known&)> matches;
    /// Binds weaker than AND, or than NOT: needs parentheses there.
    int strength = 3;
};

class Generator {
public:
    explicit Generator(unsigned seed) : random_(seed) {}

    Filter filter(int depth) {
        const auto kind = depth == 0 ? 0 : pick(4);
        if (kind == 0) return clause();
        if (kind == 1) return negation(depth);
        return chain(depth, kind == 2);
    }

    std::size_t pick(std::size_t count) { return random_() % count; }
    double number() { return static_cast<double>(pick(7)) - 3; }

private:
    Filter clause() {
        switch (pick(6)) {
            case 0:
            case 1: return metric();
            case 2: return pair("params", &Known::params);
            case 3: return pair("tags", &Known::tags);
            case 4: return time();
            default: return id_list();
        }
    }

    Filter metric() {
        const std::string key = pick(2) == 0 ? "a" : "b";
        const std::size_t aggregate = pick(4);
        constexpr const char* kEndings[] = {"", ".last", ".min", ".max"};
        const std::string comparator = comparator_name();
        const double value = number();
        Filter filter;
        filter.text =
            "metrics." + key + kEndings[aggregate] + " " + comparator + " " + std::to_string(value);
        filter.matches = [=](const Known& run) {
            const auto found = run.metrics.find(key);
            if (found == run.metrics.end()) return false;
            const std::vector<double>& all = found->second;
            const double left = aggregate < 2    ? all.back()
                                : aggregate == 2 ? least(all)
                                                 : greatest(all);
            return compare(left, comparator, value);
        };
        return filter;
    }

    Filter pair(const std::string& kind, std::map<std::string, std::string> Known::*member) {
        const std::string key = pick(2) == 0 ? "p" : "q";
        const std::string value(1 + pick(2), static_cast<char>('x' + pick(2)));
        Filter filter;
        filter.text = kind + "." + key;
        const auto find = [=](const Known& run) -> const std::string* {
            const auto found = (run.*member).find(key);
            return found == (run.*member).end() ? nullptr : &found->second;
        };
        switch (pick(5)) {
            case 0:
                filter.text += " = '" + value + "'";
                filter.matches = [=](const Known& run) { return find(run) && *find(run) == value; };
                break;
            case 1:
                filter.text += " != '" + value + "'";
                filter.matches = [=](const Known& run) { return find(run) && *find(run) != value; };
                break;
            case 2:
                filter.text += " LIKE '" + value + "%'";
                filter.matches = [=](const Known& run) {
                    return find(run) && find(run)->starts_with(value);
                };
                break;
            case 3:
                filter.text += " IS NULL";
                filter.matches = [=](const Known& run) { return find(run) == nullptr; };
                break;
            default:
                filter.text += " IS NOT NULL";
                filter.matches = [=](const Known& run) { return find(run) != nullptr; };
        }
        return filter;
    }

    Filter time() {
        const std::string comparator = comparator_name();
        const auto value = static_cast<std::int64_t>(pick(5));
        const bool is_end = pick(2) == 0;
        Filter filter;
        filter.text = std::string(is_end ? "end_time " : "attributes.start_time ") + comparator +
                      " " + std::to_string(value);
        filter.matches = [=](const Known& run) {
            if (is_end && !run.end_time_ms) return false;
            const std::int64_t left = is_end ? *run.end_time_ms : run.start_time_ms;
            return compare(static_cast<double>(left), comparator, static_cast<double>(value));
        };
        return filter;
    }

    Filter id_list() {
        const bool is_in = pick(2) == 0;
        const std::string one = "r" + std::to_string(pick(40));
        const std::string other = "r" + std::to_string(pick(40));
        Filter filter;
        filter.text = std::string("run_id ") + (is_in ? "IN" : "NOT IN") + " ('" + one + "', \"" +
                      other + "\")";
        filter.matches = [=](const Known& run) {
            return (run.id == one || run.id == other) == is_in;
        };
        return filter;
    }

    Filter negation(int depth) {
        const Filter inner = filter(depth - 1);
        return {"NOT " + grouped(inner, 3),
                [matches = inner.matches](const Known& run) { return !matches(run); }, 3};
    }

    Filter chain(int depth, bool is_and) {
        const int strength = is_and ? 2 : 1;
        std::vector<Filter> parts;
        std::string text;
        for (std::size_t i = 0; i < 2 + pick(2); ++i) {
            parts.push_back(filter(depth - 1));
            const char* joints[] = {" AND ", " and ", " OR ", " or "};
            text +=
                (i > 0 ? joints[(is_and ? 0 : 2) + pick(2)] : "") + grouped(parts.back(), strength);
        }
        const auto matches = [parts, is_and](const Known& run) {
            const auto one = [&run](const Filter& part) { return part.matches(run); };
            return is_and ? std::all_of(parts.begin(), parts.end(), one)
                          : std::any_of(parts.begin(), parts.end(), one);
        };
        return {text, matches, strength};
    }

    /// With parentheses where they are needed, and sometimes where not.
    std::string grouped(const Filter& filter, int strength) {
        if (filter.strength >= strength && pick(4) != 0) return filter.text;
        return "(" + filter.text + ")";
    }

    std::string comparator_name() {
        constexpr const char* kNames[] = {"=", "!=", "<", "<=", ">", ">="};
        return kNames[pick(6)];
    }

    std::mt19937 random_;
};

class SearchPropertyTest : public StoreTest {
protected:
    std::vector<std::string> find(const SearchRuns& query) {
        const auto page = store_->search_runs(query);
        EXPECT_TRUE(page) << page.error().text() << "\n" << query.filter;
        std::vector<std::string> ids;
        if (page)
            for (const Run& one : page->items) ids.push_back(one.info.run_id);
        return ids;
    }

    void fill(Generator& draw) {
        for (int i = 0; i < 40; ++i) {
            Known known;
            known.id = "r" + std::to_string(i);
            known.start_time_ms = static_cast<std::int64_t>(draw.pick(5));
            run<Run>(CreateRun{.run_id = known.id, .start_time_ms = known.start_time_ms});
            LogBatch batch{.run_id = known.id};
            for (const char* key : {"a", "b"}) {
                const std::size_t count = draw.pick(4) == 0 ? 40 : draw.pick(4);
                for (std::size_t k = 0; k < count; ++k) {
                    const double value = draw.pick(5) == 0 ? kNan : draw.number();
                    known.metrics[key].push_back(value);
                    const auto step = static_cast<std::int64_t>(k);
                    batch.metrics.push_back({key, value, step, step});
                }
            }
            for (const char* key : {"p", "q"}) {
                if (draw.pick(3) != 0) known.params[key] = std::string(1 + draw.pick(2), 'x');
                if (draw.pick(3) != 0) known.tags[key] = draw.pick(2) == 0 ? "y" : "xy";
            }
            for (const auto& [key, value] : known.params) batch.params.push_back({key, value});
            for (const auto& [key, value] : known.tags) batch.tags.push_back({key, value});
            run(std::move(batch));
            if (draw.pick(2) == 0) {
                known.end_time_ms = static_cast<std::int64_t>(draw.pick(5));
                run<RunInfo>(UpdateRun{.run_id = known.id, .end_time_ms = known.end_time_ms});
            }
            runs_.push_back(std::move(known));
        }
    }

    std::vector<Known> runs_;
};

TEST_F(SearchPropertyTest, FiltersFindWhatTheyMean) {
    Generator draw(11);
    fill(draw);
    std::size_t some = 0;
    for (int round = 0; round < filter_count(); ++round) {
        const Filter filter = draw.filter(1 + round % 5);
        std::set<std::string> expected;
        for (const Known& known : runs_)
            if (filter.matches(known)) expected.insert(known.id);
        const auto found = find({.experiment_ids = {0}, .filter = filter.text});
        ASSERT_EQ(std::set<std::string>(found.begin(), found.end()), expected) << filter.text;
        ASSERT_EQ(found.size(), expected.size()) << filter.text;
        if (!expected.empty() && expected.size() < runs_.size()) ++some;
    }
    EXPECT_GT(some, static_cast<std::size_t>(filter_count()) / 3);  // not all or nothing
}

TEST_F(SearchPropertyTest, OrdersByAnyAggregatePageByPage) {
    Generator draw(12);
    fill(draw);
    for (const char* aggregate : {"", ".min", ".max"})
        for (const bool is_ascending : {true, false}) {
            const auto value = [&](const Known& run) {
                const auto found = run.metrics.find("a");
                if (found == run.metrics.end()) return std::pair(2, 0.0);
                const std::vector<double>& all = found->second;
                const double number = *aggregate == '\0'                 ? all.back()
                                      : std::string(aggregate) == ".min" ? least(all)
                                                                         : greatest(all);
                return std::isnan(number) ? std::pair(1, 0.0)
                                          : std::pair(0, is_ascending ? number : -number);
            };
            std::vector<Known> expected = runs_;
            std::sort(expected.begin(), expected.end(), [&](const Known& a, const Known& b) {
                return std::tuple(value(a), -a.start_time_ms, a.id) <
                       std::tuple(value(b), -b.start_time_ms, b.id);
            });
            SearchRuns query{.experiment_ids = {0}, .max_results = 7};
            query.order_by = {std::string("metrics.a") + aggregate +
                              (is_ascending ? " ASC" : " DESC")};
            std::vector<std::string> joined;
            do {
                const auto page = store_->search_runs(query);
                ASSERT_TRUE(page) << page.error().text();
                for (const Run& one : page->items) joined.push_back(one.info.run_id);
                query.page_token = page->next_page_token;
            } while (!query.page_token.empty());
            ASSERT_EQ(joined.size(), expected.size());
            for (std::size_t i = 0; i < joined.size(); ++i)
                EXPECT_EQ(joined[i], expected[i].id) << query.order_by[0] << " " << i;
        }
}

/// Runs that are there all the time are on exactly one page, whatever comes and goes around them.
TEST_F(SearchPropertyTest, PagesLoseAndRepeatNothingWhileOthersWrite) {
    std::set<std::string> lasting;
    for (int i = 0; i < 60; ++i)
        lasting.insert(
            run<Run>(CreateRun{.run_id = "keep" + std::to_string(i), .start_time_ms = i / 7})
                .info.run_id);
    std::atomic<bool> is_over{false};
    std::thread writer([&] {
        for (int i = 0; !is_over; ++i) {
            const std::string id = "come" + std::to_string(i);
            EXPECT_TRUE(store_->execute(CreateRun{.run_id = id, .start_time_ms = i % 12}));
            EXPECT_TRUE(
                store_->execute(LogMetric{"keep" + std::to_string(i % 60), {"m", 1, i, i}}));
            if (i % 3 != 0) continue;
            EXPECT_TRUE(store_->execute(DeleteRun{id}));
        }
    });
    for (int round = 0; round < 10; ++round) {
        std::multiset<std::string> seen;
        SearchRuns query{.experiment_ids = {0}, .max_results = 1 + round};
        do {
            const auto page = store_->search_runs(query);
            ASSERT_TRUE(page) << page.error().text();
            for (const Run& one : page->items) seen.insert(one.info.run_id);
            query.page_token = page->next_page_token;
        } while (!query.page_token.empty());
        for (const std::string& id : lasting) EXPECT_EQ(seen.count(id), 1u) << id;
        for (const std::string& id : seen) EXPECT_EQ(seen.count(id), 1u) << id;
    }
    is_over = true;
    writer.join();
}

}  // namespace
}  // namespace tune::tracker::search_property_test
