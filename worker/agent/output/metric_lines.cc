// A line is looked at in two ways: `tune: {...}` is parsed as JSON after bare NaN and infinities
// were put in quotes, and each scrape pattern is matched with RE2, whose time is linear in the
// line, so no pattern of a user can hang the agent.

#include "worker/agent/output/metric_lines.h"

#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"

namespace tune::worker {
namespace {

constexpr std::string_view kTunePrefix = "tune:";
constexpr std::size_t kExampleBytesMax = 200;
constexpr int kGroupsMax = 32;
constexpr double kStepMax = 9.0e18;

constexpr const char* kNumber =
    R"(([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?i:nan|inf(?:inity)?)))";

bool is_plain_name(std::string_view text) {
    if (text.empty()) return false;
    for (const char c : text) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.' || c == '/' ||
                           c == '@';
        if (!plain) return false;
    }
    return true;
}

/// `name = 0.3`, `name: 0.3`, `name 0.3`, `"name": 0.3`; not inside a longer name.
std::string default_pattern(const std::string& name) {
    return R"((?:^|[^\w.\-/]))" + RE2::QuoteMeta(name) + R"(["']?\s*[=:\s]\s*)" + kNumber +
           R"((?:[^\w.]|\.?$|\.\s))";
}

/// The length of a number's word at the beginning of `text`, in any case and with its sign; 0:
/// none.
std::size_t bare_word(std::string_view text) {
    const std::size_t sign = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
    for (const std::string_view known : {"nan", "infinity", "inf"}) {
        const std::string_view word = text.substr(sign, known.size());
        if (std::equal(word.begin(), word.end(), known.begin(), known.end(),
                       [](char a, char b) { return (a | 0x20) == b; }))
            return sign + known.size();
    }
    return 0;
}

/// True for a number, true/false, and the words for numbers that are not finite.
bool read_value(const Json& value, double& out) {
    if (value.is_number() || value.is_boolean()) {
        out = value.is_boolean() ? (value.get<bool>() ? 1.0 : 0.0) : value.get<double>();
        return true;
    }
    return value.is_string() && read_number(value.get_ref<const std::string&>(), out);
}

bool read_integer(const Json& value, std::int64_t& out) {
    double number = 0;
    if (value.is_number_integer()) {
        out = value.get<std::int64_t>();
        return true;
    }
    if (!read_value(value, number) || !std::isfinite(number) || std::fabs(number) > kStepMax)
        return false;
    out = static_cast<std::int64_t>(number);
    return static_cast<double>(out) == number;
}

std::string_view last_state(std::string_view line) {
    while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
    const std::size_t at = line.rfind('\r');
    return at == std::string_view::npos ? line : line.substr(at + 1);
}

}  // namespace

std::string quote_bare_words(std::string_view text) {
    std::string out;
    out.reserve(text.size() + 8);
    bool in_string = false;
    for (std::size_t i = 0; i < text.size();) {
        const char c = text[i];
        if (in_string || c == '"') {
            if (c == '\\' && in_string && i + 1 < text.size()) out += text[i++];
            if (c == '"') in_string = !in_string;
            out += text[i++];
            continue;
        }
        const std::size_t word = bare_word(text.substr(i));
        if (word == 0) {
            out += text[i++];
        } else {
            out += '"';
            out += text.substr(i, word);
            out += '"';
            i += word;
        }
    }
    return out;
}

bool read_number(std::string_view text, double& value) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    if (text.empty() || text.size() > 64) return false;
    static const RE2 shape(std::string("^") + kNumber + "$");
    if (!RE2::FullMatch(re2::StringPiece(text.data(), text.size()), shape)) return false;
    value = std::strtod(std::string(text).c_str(), nullptr);
    return true;
}

struct MetricLines::Pattern {
    explicit Pattern(const std::string& text) : regex(text, quiet()) {}
    static RE2::Options quiet() {
        RE2::Options options;
        options.set_log_errors(false);
        return options;
    }

    RE2 regex;
    std::string fixed_name;  // empty: groups name it
    int name_group = 0;      // 0: none
    int value_group = 0;     // 0: every group of `metric_groups`
    int step_group = 0;      // 0: none
    std::vector<std::pair<int, std::string>> metric_groups;
};

MetricLines::MetricLines(std::vector<std::unique_ptr<Pattern>> patterns)
    : patterns_(std::move(patterns)) {}
MetricLines::~MetricLines() = default;
MetricLines::MetricLines(MetricLines&&) noexcept = default;
MetricLines& MetricLines::operator=(MetricLines&&) noexcept = default;

Result<MetricLines> MetricLines::create(const std::vector<tuner::ScrapePattern>& patterns,
                                        std::string objective) {
    std::vector<std::unique_ptr<Pattern>> compiled;
    for (const tuner::ScrapePattern& given : patterns) {
        std::string name = given.name;
        std::string text = given.pattern;
        if (name.empty() && is_plain_name(text)) std::swap(name, text);
        auto pattern = std::make_unique<Pattern>(text.empty() ? default_pattern(name) : text);
        const auto refuse = [&](const std::string& why) {
            return Error{Code::kInvalidParameterValue,
                         "the scrape pattern '" + given.pattern + "' " + why};
        };
        if (name.empty() && text.empty()) return refuse("is empty");
        if (!pattern->regex.ok())
            return refuse("is not a valid RE2 expression: " + pattern->regex.error());
        const int groups = pattern->regex.NumberOfCapturingGroups();
        if (groups == 0) return refuse("has no group for the value: put the number in ( )");
        if (groups >= kGroupsMax) return refuse("has more than 31 groups");
        const std::map<std::string, int>& named = pattern->regex.NamedCapturingGroups();
        const auto group = [&](const char* key) {
            const auto found = named.find(key);
            return found == named.end() ? 0 : found->second;
        };
        pattern->step_group = group("step");
        pattern->value_group = group("value");
        if (!name.empty()) {
            pattern->fixed_name = name;
            if (pattern->value_group == 0) pattern->value_group = 1;
            if (pattern->step_group == 0 && named.empty() && groups >= 2) pattern->step_group = 2;
        } else if (pattern->value_group != 0) {
            pattern->name_group = group("name");
            if (pattern->name_group == 0) pattern->fixed_name = objective;
        } else if (!named.empty()) {
            for (const auto& [key, index] : named)
                if (key != "step") pattern->metric_groups.emplace_back(index, key);
        } else if (groups == 1) {
            pattern->fixed_name = objective;
            pattern->value_group = 1;
        } else {
            pattern->name_group = 1;
            pattern->value_group = 2;
        }
        compiled.push_back(std::move(pattern));
    }
    return MetricLines(std::move(compiled));
}

void MetricLines::add(std::string key, double value, const std::int64_t* step,
                      std::int64_t timestamp_ms, LineFindings& findings) {
    const std::int64_t at = step != nullptr ? *step : next_steps_[key]++;
    findings.metrics.push_back({std::move(key), value, at, timestamp_ms});
}

void MetricLines::malformed(std::string_view line, const std::string& why) {
    if (malformed_count_++ == 0)
        malformed_example_ = "'" + std::string(line.substr(0, kExampleBytesMax)) + "': " + why;
}

void MetricLines::read_tune_line(std::string_view line, std::string_view json,
                                 std::int64_t timestamp_ms, LineFindings& findings) {
    Result<Json> parsed = parse_json(std::string(json));
    if (!parsed) parsed = parse_json(quote_bare_words(json));
    if (!parsed && json.find('"') == std::string_view::npos && json.find('\'') != json.npos)
        return malformed(line, "names must be in double quotes (in Python: json.dumps)");
    if (!parsed) return malformed(line, parsed.error().message);
    if (!parsed->is_object()) return malformed(line, "expected a JSON object");
    std::int64_t step = 0;
    const bool has_step = parsed->contains("step");
    if (has_step && !read_integer((*parsed)["step"], step))
        return malformed(line, "'step' is not an integer");
    if (parsed->contains("timestamp_ms") && !read_integer((*parsed)["timestamp_ms"], timestamp_ms))
        return malformed(line, "'timestamp_ms' is not an integer");
    std::string refused;
    for (const auto& [key, value] : parsed->items()) {
        double number = 0;
        if (key == "step" || key == "timestamp_ms") continue;
        if (key == "params" && value.is_object()) {
            for (const auto& [name, param] : value.items())
                findings.params.push_back(
                    {name, param.is_string() ? param.get<std::string>() : to_text(param)});
        } else if (key == "artifact" && value.is_string()) {
            findings.artifacts.push_back(value.get<std::string>());
        } else if (read_value(value, number)) {
            add(key, number, has_step ? &step : nullptr, timestamp_ms, findings);
        } else if (refused.empty()) {
            refused = "'" + key + "' is not a number";
        }
    }
    if (!refused.empty()) malformed(line, refused);
}

void MetricLines::scrape(const Pattern& pattern, std::string_view line, std::int64_t timestamp_ms,
                         LineFindings& findings) {
    re2::StringPiece groups[kGroupsMax];
    const re2::StringPiece text(line.data(), line.size());
    const int count = pattern.regex.NumberOfCapturingGroups() + 1;
    if (!pattern.regex.Match(text, 0, line.size(), RE2::UNANCHORED, groups, count)) return;
    const auto group = [&](int index) {
        const re2::StringPiece& found = groups[index];
        return found.data() == nullptr ? std::string_view()
                                       : std::string_view(found.data(), found.size());
    };
    double number = 0;
    std::int64_t step = 0;
    bool has_step = false;
    if (pattern.step_group != 0 && read_number(group(pattern.step_group), number) &&
        std::isfinite(number) && std::fabs(number) < kStepMax) {
        step = static_cast<std::int64_t>(number);
        has_step = true;
    }
    const auto found = [&](std::string key, int index) {
        if (key.empty() || !read_number(group(index), number)) return;
        add(std::move(key), number, has_step ? &step : nullptr, timestamp_ms, findings);
    };
    if (pattern.value_group == 0) {
        for (const auto& [index, key] : pattern.metric_groups) found(key, index);
    } else {
        found(pattern.name_group != 0 ? std::string(group(pattern.name_group)) : pattern.fixed_name,
              pattern.value_group);
    }
}

void MetricLines::read(std::string_view line, std::int64_t timestamp_ms, LineFindings& findings) {
    line = last_state(line);
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return;
    if (line.substr(begin).starts_with(kTunePrefix)) {
        std::string_view json = line.substr(begin + kTunePrefix.size());
        while (!json.empty() && (json.front() == ' ' || json.front() == '\t'))
            json.remove_prefix(1);
        if (json.starts_with('{')) return read_tune_line(line, json, timestamp_ms, findings);
        return malformed(line, "expected a JSON object after 'tune:'");
    }
    for (const auto& pattern : patterns_) scrape(*pattern, line, timestamp_ms, findings);
}

}  // namespace tune::worker
