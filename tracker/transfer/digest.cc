// Two digests are equal when the records are: fields are written with their lengths and unordered
// lists sorted. Points are mixed one by one and added, because a store may return them in another
// order and a history may not fit in memory. Addition is no proof against an attacker, and need not
// be one.

#include "tracker/transfer/digest.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/crypto/digest.h"
#include "base/text/hex.h"

namespace tune::tracker {
namespace {

/// Texts are written with their lengths, so that no two records have the same text.
class Canonical {
public:
    Canonical& text(std::string_view value) {
        out_ += std::to_string(value.size());
        out_ += ':';
        out_ += value;
        return *this;
    }
    Canonical& number(std::int64_t value) {
        out_ += std::to_string(value);
        out_ += ';';
        return *this;
    }
    Canonical& number(const std::optional<std::int64_t>& value) {
        if (value) return number(*value);
        out_ += "-;";
        return *this;
    }
    Canonical& optional_text(const std::optional<std::string>& value) {
        if (value) return text(std::string_view(*value));
        out_ += "-;";
        return *this;
    }
    [[nodiscard]] const std::string& out() const { return out_; }

private:
    std::string out_;
};

std::uint64_t mix(std::uint64_t value) {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

/// NaN of any kind is one value, and so is zero of either sign, as in the store.
std::uint64_t bits_of(double value) {
    if (std::isnan(value)) return 0x7ff8000000000000u;
    return std::bit_cast<std::uint64_t>(value == 0 ? 0.0 : value);
}

/// Sorted, so that the order in which a store lists them does not matter.
template <class Item>
void put_pairs(Canonical& out, const std::vector<Item>& items) {
    std::vector<const Item*> sorted;
    for (const Item& item : items) sorted.push_back(&item);
    std::sort(sorted.begin(), sorted.end(),
              [](const Item* a, const Item* b) { return a->key < b->key; });
    out.number(static_cast<std::int64_t>(sorted.size()));
    for (const Item* item : sorted) out.text(item->key).text(item->value);
}

void put_sorted(Canonical& out, std::vector<std::string> texts) {
    std::sort(texts.begin(), texts.end());
    out.number(static_cast<std::int64_t>(texts.size()));
    for (const std::string& text : texts) out.text(text);
}

std::string text_of(const DatasetInput& input) {
    Canonical out;
    const Dataset& dataset = input.dataset;
    out.text(dataset.name).text(dataset.digest).text(dataset.source_type).text(dataset.source);
    out.optional_text(dataset.schema).optional_text(dataset.profile);
    put_pairs(out, input.tags);
    return out.out();
}

Canonical canonical(const SourceRun& source) {
    const Run& run = source.run;
    Canonical out;
    out.text(run.info.run_id).text(run.info.run_name).text(run.info.user_id);
    out.number(static_cast<std::int64_t>(run.info.status)).number(run.info.start_time_ms);
    out.number(run.info.end_time_ms);
    out.number(static_cast<std::int64_t>(run.info.lifecycle_stage)).number(source.deleted_time_ms);
    put_pairs(out, run.params);
    put_pairs(out, run.tags);
    std::vector<std::string> datasets;
    for (const DatasetInput& input : run.dataset_inputs) datasets.push_back(text_of(input));
    put_sorted(out, std::move(datasets));
    std::vector<std::string> models;
    for (const ModelInput& model : run.model_inputs) models.push_back("in " + model.model_id);
    for (const ModelOutput& model : run.model_outputs)
        models.push_back("out " + model.model_id + " " + std::to_string(model.step));
    put_sorted(out, std::move(models));
    return out;
}

std::string text_of(const Metric& metric) {
    Canonical out;
    out.text(metric.key).number(metric.timestamp_ms).number(metric.step).text(metric.run_id);
    out.text(metric.dataset_name).text(metric.dataset_digest);
    out.number(static_cast<std::int64_t>(bits_of(metric.value)));
    return out.out();
}

}  // namespace

void RunDigest::add(std::string_view key, std::span<const Point> points) {
    if (points.empty()) return;
    auto place = series_.find(key);
    if (place == series_.end()) place = series_.emplace(std::string(key), SeriesDigest{}).first;
    SeriesDigest& series = place->second;
    for (const Point& point : points) {
        const std::uint64_t time = mix(static_cast<std::uint64_t>(point.timestamp_ms) + 1);
        const std::uint64_t step = mix(time ^ static_cast<std::uint64_t>(point.step));
        const std::uint64_t whole = mix(step + bits_of(point.value));
        series.low += whole;
        series.high += mix(whole + 0x9e3779b97f4a7c15u);
    }
    series.count += points.size();
    point_count_ += points.size();
}

std::string RunDigest::first_difference(const RunDigest& other) const {
    for (const RunDigest* one : {this, &other})
        for (const auto& [key, series] : one->series_) {
            const auto mine = series_.find(key);
            const auto theirs = other.series_.find(key);
            const bool is_same = mine != series_.end() && theirs != other.series_.end() &&
                                 mine->second == theirs->second;
            if (!is_same) return key;
        }
    return {};
}

std::string RunDigest::finish(const SourceRun& run) const {
    Canonical out = canonical(run);
    for (const auto& [key, series] : series_) {
        out.text(key).number(static_cast<std::int64_t>(series.count));
        out.number(static_cast<std::int64_t>(series.low));
        out.number(static_cast<std::int64_t>(series.high));
    }
    return hex_encode(sha256(out.out()));
}

std::string stamp_of(const SourceRun& run) {
    return hex_encode(sha256(canonical(run).text(run.history_stamp).out()));
}

std::string digest_of(const SourceModel& source) {
    const LoggedModel& model = source.model;
    Canonical out;
    out.text(model.model_id).text(model.name).text(model.status_message).text(model.model_type);
    out.text(model.source_run_id).number(model.creation_time_ms);
    out.number(model.last_updated_time_ms).number(static_cast<std::int64_t>(model.status));
    out.number(static_cast<std::int64_t>(source.life));
    put_pairs(out, model.params);
    put_pairs(out, model.tags);
    std::vector<std::string> metrics;
    for (const Metric& metric : model.metrics) metrics.push_back(text_of(metric));
    put_sorted(out, std::move(metrics));
    return hex_encode(sha256(out.out()));
}

std::string digest_of(const SourceRegisteredModel& source) {
    const RegisteredModel& model = source.model;
    Canonical out;
    out.text(model.name).text(model.description).number(model.creation_time_ms);
    out.number(model.last_updated_time_ms);
    put_pairs(out, model.tags);
    std::vector<std::string> aliases;
    for (const ModelAlias& alias : model.aliases)
        aliases.push_back(std::to_string(alias.version) + " " + alias.alias);
    put_sorted(out, std::move(aliases));
    std::vector<std::string> versions;
    for (const ModelVersion& version : source.versions) {
        Canonical one;
        one.number(version.version).number(version.creation_time_ms);
        one.number(version.last_updated_time_ms).optional_text(version.description);
        one.optional_text(version.user_id).number(static_cast<std::int64_t>(version.stage));
        one.text(version.source).text(version.storage_location).optional_text(version.run_id);
        one.optional_text(version.run_link).number(static_cast<std::int64_t>(version.status));
        one.text(version.status_message);
        put_pairs(one, version.tags);
        versions.push_back(one.out());
    }
    put_sorted(out, std::move(versions));
    return hex_encode(sha256(out.out()));
}

void keep_each_point_once(std::vector<Point>& points) {
    if (!std::is_sorted(points.begin(), points.end(), is_before))
        std::sort(points.begin(), points.end(), is_before);
    const auto end = std::unique(points.begin(), points.end(), [](const Point& a, const Point& b) {
        return compare_in_time(a, b) == 0;
    });
    points.erase(end, points.end());
}

}  // namespace tune::tracker
