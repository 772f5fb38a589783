// The `retry` and `scrape` sections of a study.
//
// A scrape pattern is compiled here, by RE2 as in the agent, so that a mistake is reported with its
// line before any trial starts. RE2 matches in time linear in the text, whatever the pattern:
// trials' output comes from anywhere.

#include "tuner/config/study_sections.h"

#include <re2/re2.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tuner/config/study_words.h"
#include "tuner/options/fields.h"
#include "tuner/space/error_text.h"

namespace tune::tuner {
namespace {

constexpr std::size_t kPatternBytesMax = 1000;
constexpr std::size_t kPatternsMax = 100;
constexpr std::size_t kNameBytesMax = 250;
constexpr int kRetriesMax = 1000;

bool is_plain_name(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               std::string_view("_-./@").find(c) != std::string_view::npos;
    });
}

/// Of a section's node that is the pattern itself, and of the key of one that is a map.
Result<void> set_pattern(const Node& pattern, const std::string& path, ScrapeConfig& scrape) {
    TUNE_TRY_VOID(check_text(pattern, path, kPatternBytesMax));
    const std::string& text = pattern.text;
    // A plain word is the name of a metric; the agent finds "name = number" by itself.
    if (scrape.name.empty() ? !is_plain_name(text) : !text.empty()) {
        RE2::Options options;
        options.set_log_errors(false);
        const RE2 compiled(text, options);
        if (!compiled.ok())
            return error_at(pattern.place, path,
                            "the pattern " + in_quotes(text) +
                                " is not a regular expression (RE2): " + compiled.error());
        if (compiled.NumberOfCapturingGroups() == 0)
            return error_at(pattern.place, path,
                            "the pattern " + in_quotes(text) +
                                " has no group; put the number in brackets: loss=([0-9.e+-]+)");
    }
    scrape.pattern = text;
    return {};
}

Result<void> read_scrape_name(const Fields& fields, ScrapeConfig& scrape) {
    TUNE_TRY_VOID(fields.text("name", scrape.name, kNameBytesMax));
    const Node* name = fields.find("name");
    if (name == nullptr) return {};
    if (const auto error = metric_name_error(scrape.name))
        return error_at(name->place, fields.path_of("name"), *error);
    return {};
}

Result<void> read_scrape_pattern(const Fields& fields, ScrapeConfig& scrape) {
    const Node* pattern = fields.find("pattern");
    if (pattern == nullptr)
        return error_at(fields.node().place, fields.path(), "'pattern' is missing");
    return set_pattern(*pattern, fields.path(), scrape);
}

OptionTable scrape_rows() {
    TableOf<ScrapeConfig> table;
    table.custom("name",
                 {.type = "text",
                  .schema = R"({"type": "string", "maxLength": 250})",
                  .api = "text",
                  .read = read_scrape_name,
                  .write =
                      [](const ScrapeConfig& scrape, Json& json) {
                          if (!scrape.name.empty()) json["name"] = scrape.name;
                      }},
                 "of the metric, where the pattern does not name it");
    table
        .custom("pattern",
                {.type = "text",
                 .schema = R"({"type": "string", "minLength": 1, "maxLength": 1000})",
                 .api = "text",
                 .read = read_scrape_pattern,
                 .write = [](const ScrapeConfig& scrape,
                             Json& json) { json["pattern"] = scrape.pattern; },
                 .is_always_written = true},
                "a regular expression (RE2) with a group around the number, or a metric's name")
        .needed();
    return table;
}

Result<ScrapeConfig> read_pattern(const Node& node, const std::string& path) {
    ScrapeConfig scrape;
    if (node.type == Node::Type::kString) {
        TUNE_TRY_VOID(set_pattern(node, path, scrape));
        return scrape;
    }
    TUNE_TRY(fields, Fields::open(node, path, scrape_options().names()));
    TUNE_TRY_VOID(scrape_options().read(fields, &scrape));
    return scrape;
}

constexpr RetryOn kEnds[] = {RetryOn::kPreempted, RetryOn::kOom, RetryOn::kFailed,
                             RetryOn::kTimeout};

Result<void> read_ends(const Fields& fields, RetryConfig& retry) {
    std::vector<std::string> known;
    for (const RetryOn end : kEnds) known.emplace_back(retry_name(end));
    const Node* on = fields.find("on");
    if (on == nullptr) return {};
    if (on->type != Node::Type::kList)
        return error_at(on->place, fields.path_of("on"),
                        "expected a list of " + listed(known) + ", found " + describe(*on));
    for (const Node& item : on->items) {
        const auto found = std::find(known.begin(), known.end(), item.text);
        if (item.type != Node::Type::kString || found == known.end())
            return error_at(
                item.place, fields.path_of("on"),
                "unknown end of an attempt: " + describe(item) + known_words(item.text, known));
        const RetryOn end = kEnds[found - known.begin()];
        if (std::find(retry.on.begin(), retry.on.end(), end) == retry.on.end())
            retry.on.push_back(end);
    }
    return {};
}

void write_ends(const RetryConfig& retry, Json& json) {
    json["on"] = Json::array();
    for (const RetryOn end : retry.on) json["on"].push_back(std::string(retry_name(end)));
}

OptionTable retry_rows() {
    TableOf<RetryConfig> table;
    table.integer("max", &RetryConfig::max, 0, kRetriesMax,
                  "further attempts of a trial; lost agents and preemptions never count");
    table.custom("on",
                 {.type = "list of preempted, oom, failed, timeout",
                  .schema = R"({"type": "array",
                      "items": {"enum": ["preempted", "oom", "failed", "timeout"]}})",
                  .api = "list of enum(preempted|oom|failed|timeout)",
                  .read = read_ends,
                  .write = write_ends,
                  .is_always_written = true},
                 "ends of an attempt after which the trial is tried again");
    return table;
}

}  // namespace

const OptionTable& scrape_options() {
    static const OptionTable kOptions = scrape_rows();
    return kOptions;
}

const OptionTable& retry_options() {
    static const OptionTable kOptions = retry_rows();
    return kOptions;
}

Result<void> read_retry(const Node& node, StudyConfig& config) {
    TUNE_TRY(fields, Fields::open(node, "retry", retry_options().names()));
    RetryConfig retry;
    TUNE_TRY_VOID(retry_options().read(fields, &retry));
    config.retry = std::move(retry);
    return {};
}

Result<void> read_scrape(const Node& node, StudyConfig& config) {
    if (node.type != Node::Type::kList) {
        TUNE_TRY(one, read_pattern(node, "scrape"));
        config.scrape = {std::move(one)};
        return {};
    }
    if (node.items.size() > kPatternsMax)
        return error_at(node.place, "scrape", "at most 100 patterns are supported");
    for (const Node& item : node.items) {
        TUNE_TRY(one, read_pattern(item, "scrape"));
        config.scrape.push_back(std::move(one));
    }
    return {};
}

}  // namespace tune::tuner
