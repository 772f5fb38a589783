// Names decide everything here: digits of a fixed width are versions, so the files of a log sort by
// version, and a checkpoint counts only when each part that its names promise is in the listing.

#include "loader/delta/log_files.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/text/number_text.h"

namespace tune::loader {
namespace {

constexpr std::size_t kVersionDigits = 20;

/// Decimal digits of exactly this width.
std::optional<std::int64_t> number_of(std::string_view text, std::size_t digits) {
    if (text.size() != digits || text.front() == '-') return std::nullopt;
    return number_from_text<std::int64_t>(text);
}

/// Takes what stands before the next '.' off `text`.
std::string_view take_part(std::string_view& text) {
    const std::size_t dot = text.find('.');
    const std::string_view part = text.substr(0, dot);
    text = dot == std::string_view::npos ? std::string_view{} : text.substr(dot + 1);
    return part;
}

struct CheckpointName {
    std::int64_t version = 0;
    std::int64_t part = 1;
    std::int64_t parts = 1;
};

/// "V.checkpoint.parquet", "V.checkpoint.PART.PARTS.parquet", "V.checkpoint.UUID.json|parquet".
std::optional<CheckpointName> checkpoint_name(std::string_view name) {
    const auto version = number_of(take_part(name), kVersionDigits);
    if (!version || take_part(name) != "checkpoint") return std::nullopt;
    if (name == "parquet") return CheckpointName{*version};
    const std::string_view first = take_part(name);
    if (first.size() == 36 && (name == "json" || name == "parquet"))
        return CheckpointName{*version};
    const auto part = number_of(first, 10);
    const auto parts = number_of(take_part(name), 10);
    if (!part || !parts || name != "parquet" || *part < 1 || *part > *parts) return std::nullopt;
    return CheckpointName{*version, *part, *parts};
}

/// The complete checkpoints by version, each with its files in order.
std::map<std::int64_t, std::vector<std::string>> complete_checkpoints(
    const std::vector<std::string>& names) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::map<std::int64_t, std::string>> parts;
    std::map<std::int64_t, std::vector<std::string>> complete;
    for (const std::string& name : names) {
        const auto checkpoint = checkpoint_name(name);
        if (!checkpoint) continue;
        if (checkpoint->parts == 1)
            complete[checkpoint->version] = {name};
        else
            parts[{checkpoint->version, checkpoint->parts}][checkpoint->part] = name;
    }
    for (const auto& [key, files] : parts) {
        if (static_cast<std::int64_t>(files.size()) != key.second) continue;
        std::vector<std::string>& all = complete[key.first];
        if (!all.empty()) continue;
        for (const auto& [part, name] : files) all.push_back(name);
    }
    return complete;
}

}  // namespace

std::string commit_name(std::int64_t version) {
    std::string digits = std::to_string(version);
    digits.insert(0, kVersionDigits - std::min(kVersionDigits, digits.size()), '0');
    return digits + ".json";
}

std::optional<std::int64_t> commit_version(std::string_view name) {
    const auto version = number_of(take_part(name), kVersionDigits);
    return name == "json" ? version : std::nullopt;
}

Result<LogSegment> choose_segment(const std::vector<std::string>& names,
                                  std::optional<std::int64_t> wanted) {
    std::set<std::int64_t> commits;
    for (const std::string& name : names)
        if (const auto version = commit_version(name)) commits.insert(*version);
    const auto checkpoints = complete_checkpoints(names);
    if (commits.empty() && checkpoints.empty())
        return Error{Code::kResourceDoesNotExist, "the log holds no commits"};
    std::int64_t newest = commits.empty() ? -1 : *commits.rbegin();
    if (!checkpoints.empty()) newest = std::max(newest, checkpoints.rbegin()->first);
    LogSegment segment{wanted.value_or(newest)};
    if (segment.version > newest || segment.version < 0)
        return Error{Code::kResourceDoesNotExist, "the table has no version " +
                                                      std::to_string(segment.version) +
                                                      "; its newest is " + std::to_string(newest)};
    std::int64_t next = 0;
    auto checkpoint = checkpoints.upper_bound(segment.version);
    if (checkpoint != checkpoints.begin()) {
        --checkpoint;
        segment.checkpoint = checkpoint->second;
        next = checkpoint->first + 1;
    }
    for (; next <= segment.version; ++next) {
        if (commits.contains(next)) {
            segment.commits.push_back(next);
            continue;
        }
        const bool is_cleaned = segment.checkpoint.empty() && segment.commits.empty();
        return Error{is_cleaned ? Code::kResourceDoesNotExist : Code::kDataLoss,
                     "version " + std::to_string(segment.version) + " needs the commit " +
                         commit_name(next) + ", which is not there" +
                         (is_cleaned ? "; the log was cleaned up since" : "")};
    }
    return segment;
}

}  // namespace tune::loader
