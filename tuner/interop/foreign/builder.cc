// Writes a study.yaml from the distributions of another tuner. Every distribution is expressed by
// the options of our own kinds; where the two differ (steps on a log scale, clipped multiples) the
// nearest one is chosen and a note at the top of the file says what changed. The text is written
// line by line, as a person would, and the tests read it back with the reader of study files.

#include "tuner/interop/foreign/builder.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/text/number_text.h"
#include "tuner/space/error_text.h"
#include "tuner/space/space.h"

namespace tune::tuner {
namespace {

bool is_plain(const std::string& text) {
    const auto is_letter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    if (text.empty() || !is_letter(text[0])) return false;
    for (const char c : text)
        if (!is_letter(c) && !(c >= '0' && c <= '9') && c != '-' && c != '.' && c != '/')
            return false;
    std::string lower = text;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    for (const char* word :
         {"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"})
        if (lower == word) return false;
    return true;
}

/// One line of YAML, as people write it.
std::string flow(const Json& value) {
    if (value.is_string()) {
        const std::string& text = value.get_ref<const std::string&>();
        return is_plain(text) ? text : to_text(value);
    }
    if (value.is_number_float()) return number_text(value.get<double>());
    if (value.is_array()) {
        std::string text;
        for (const Json& item : value) text += (text.empty() ? "" : ", ") + flow(item);
        return "[" + text + "]";
    }
    if (!value.is_object()) return to_text(value);
    std::string text;
    for (const auto& [key, item] : value.items())
        text += (text.empty() ? "" : ", ") + flow(Json(key)) + ": " + flow(item);
    return "{" + text + "}";
}

/// The kind before its options: objects in JSON have no order.
std::string spec_text(const Json& spec, const Json& when) {
    std::string text;
    const auto add = [&](const std::string& key) {
        if (spec.contains(key)) text += (text.empty() ? "" : ", ") + key + ": " + flow(spec[key]);
    };
    for (const char* key : {"float", "int", "choice", "ordinal", "const", "normal", "lognormal",
                            "low", "high", "log", "step", "weights"})
        add(key);
    if (!when.is_null()) text += ", when: " + flow(when);
    return "{" + text + "}";
}

/// Clipped multiples that are listed one by one.
constexpr double kListedMost = 100;

/// The decimal number that is meant: 0.3, not 0.30000000000000004.
double multiple(double count, double step) {
    char text[32];
    std::snprintf(text, sizeof text, "%.15g", count * step);
    return std::strtod(text, nullptr) + 0.0;
}

}  // namespace

StudyBuilder::StudyBuilder() = default;
StudyBuilder::~StudyBuilder() = default;

void StudyBuilder::note(Place place, std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
    notes_.push_back(place_prefix(place) + text);
}

void StudyBuilder::set(const std::string& key, const Json& value) {
    std::erase_if(sections_, [&](const auto& section) { return section.first == key; });
    sections_.emplace_back(key, flow(value));
}

bool StudyBuilder::has(const std::string& key) const {
    return std::any_of(sections_.begin(), sections_.end(),
                       [&](const auto& section) { return section.first == key; });
}

Result<void> StudyBuilder::add(Place place, const std::string& name, Json spec, const Json& when) {
    for (const auto& [other, text] : parameters_)
        if (other == name) return error_at(place, name, "a second parameter of this name");
    parameters_.emplace_back(name, spec_text(spec, when));
    return {};
}

Json StudyBuilder::spec_of(Place place, const std::string& name, const ForeignDomain& domain) {
    Json spec = Json::object();
    if (domain.kind == ForeignDomain::Kind::kNormal) {
        spec[domain.log ? "lognormal" : "normal"] = {domain.center, domain.spread};
        if (domain.step == 0) return spec;
        if (domain.log) {
            note(place, name + ": its step is left out; a float on a log scale has none");
            return spec;
        }
        // Five deviations to both sides, on multiples of the step.
        const auto nearest = [&](double v) {
            return multiple(std::rint(v / domain.step), domain.step);
        };
        spec["low"] = nearest(domain.center - 5 * domain.spread);
        spec["high"] = nearest(domain.center + 5 * domain.spread);
        spec["step"] = domain.step;
        return spec;
    }
    double low = domain.low;
    double high = domain.high;
    double step = domain.step;
    if (step > 0 && domain.log && !domain.is_integer) {
        note(place, name + ": its step is left out; a float on a log scale has none");
        step = 0;
    }
    if (step > 0) {
        const double first = std::rint(low / step);
        const double last = std::rint(high / step);
        low = multiple(first, step);
        high = multiple(last, step);
        const bool is_cut = domain.is_clipped && domain.low <= domain.high &&
                            (low < domain.low || high > domain.high);
        if (is_cut && last - first < kListedMost) {
            Json values = Json::array();
            for (double count = first; count <= last; ++count) {
                const double value = std::clamp(multiple(count, step), domain.low, domain.high);
                if (values.empty() || values.back() != Json(value))
                    values.push_back(number_json(value));
            }
            spec["ordinal"] = std::move(values);
            return spec;
        }
        if (is_cut) {
            note(place, name + ": only multiples of " + number_text(step) +
                            "; the bounds are not multiples and are left out");
            if (low < domain.low) low = multiple(first + 1, step);
            if (high > domain.high) high = multiple(last - 1, step);
        }
    }
    const bool is_integer = domain.is_integer || (step > 0 && is_whole(step) && is_whole(low));
    if (is_integer) {
        spec["int"] = {static_cast<std::int64_t>(low), static_cast<std::int64_t>(high)};
        if (step > 1 && low < high) spec["step"] = static_cast<std::int64_t>(step);
    } else {
        spec["float"] = {low, high};
        if (step > 0 && low < high) spec["step"] = step;
    }
    if (domain.log) spec["log"] = true;
    return spec;
}

std::string StudyBuilder::text(const std::string& title) const {
    std::string text = "# " + title + "\n";
    for (const std::string& note : notes_) text += "# " + note + "\n";
    for (const char* key : {"study", "command", "metric"})
        for (const auto& [name, value] : sections_)
            if (name == key) text += name + ": " + value + "\n";
    text += parameters_.empty() ? "" : "space:\n";
    for (const auto& [name, spec] : parameters_)
        text += "  " + flow(Json(name)) + ": " + spec + "\n";
    for (const auto& [name, value] : sections_)
        if (name != "study" && name != "command" && name != "metric")
            text += name + ": " + value + "\n";
    return text;
}

void note_others(StudyBuilder& builder, const Node& map, const std::vector<std::string>& known,
                 std::string_view path) {
    for (const Entry& entry : map.entries)
        if (std::find(known.begin(), known.end(), entry.key) == known.end())
            builder.note(entry.place, "not carried over: " + std::string(path) +
                                          (path.empty() ? "" : ".") + shortened(entry.key));
}

void note_median(StudyBuilder& builder, Place place) {
    builder.note(
        place,
        "median: compares with the other trials' values at the step, not with the means of "
        "what they reported so far; 'warmup' is a step, not a number of reports");
}

Result<double> number_in(const Node& node, const std::string& path) {
    if (node.is_number() && std::isfinite(node.number)) return node.number;
    double value = 0;
    if (node.type == Node::Type::kString) {
        const char* end = node.text.data() + node.text.size();
        const auto [stop, ec] = std::from_chars(node.text.data(), end, value);
        if (ec == std::errc() && stop == end && std::isfinite(value)) return value;
    }
    return error_at(node.place, path, "expected a number, found " + describe(node));
}

Result<std::vector<double>> numbers_in(const Node& node, const std::string& path,
                                       std::size_t count) {
    if (node.type != Node::Type::kList || node.items.size() != count)
        return error_at(
            node.place, path,
            "expected a list of " + std::to_string(count) + " numbers, found " + describe(node));
    std::vector<double> numbers;
    for (const Node& item : node.items) {
        TUNE_TRY(number, number_in(item, path));
        numbers.push_back(number);
    }
    return numbers;
}

bool is_whole(double value) {
    return value == std::floor(value) && std::abs(value) <= 9007199254740992.0;
}

Json number_json(double value) {
    return is_whole(value) ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

}  // namespace tune::tuner
