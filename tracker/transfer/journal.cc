#include "tracker/transfer/journal.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/crypto/digest.h"
#include "base/json.h"
#include "base/text/hex.h"
#include "tracker/transfer/text.h"

namespace tune::tracker {
namespace {

constexpr const char* kCollection = "import";
constexpr std::size_t kPrefixCharacters = 16;

}  // namespace

Result<Journal> Journal::load(const Store& store, const std::string& location) {
    Journal journal;
    journal.prefix_ = hex_encode(sha256(location)).substr(0, kPrefixCharacters) + "/";
    TUNE_TRY(documents, store.list_documents(kCollection, journal.prefix_));
    for (const Document& document : documents) {
        TUNE_TRY(json, parse_json(document.json_text));
        JournalEntry entry;
        entry.is_done = json.value("done", false);
        entry.digest = json.value("digest", "");
        entry.stamp = json.value("stamp", "");
        entry.points = json.value("points", std::int64_t{0});
        journal.entries_.emplace(document.key, std::move(entry));
    }
    return journal;
}

std::string Journal::key_of(Kind kind, std::string_view id) const {
    return prefix_ + static_cast<char>(kind) + "/" + std::string(id);
}

const JournalEntry* Journal::find(Kind kind, std::string_view id) const {
    const auto found = entries_.find(key_of(kind, id));
    return found == entries_.end() ? nullptr : &found->second;
}

PutDocument Journal::put(Kind kind, std::string_view id, JournalEntry entry) {
    const std::string key = key_of(kind, id);
    Json json = {{"done", entry.is_done}};
    if (!entry.digest.empty()) json["digest"] = entry.digest;
    if (!entry.stamp.empty()) json["stamp"] = entry.stamp;
    if (entry.points > 0) json["points"] = entry.points;
    entries_[key] = std::move(entry);
    return {kCollection, key, to_text(json)};
}

std::optional<ExperimentId> Journal::target_of(ExperimentId experiment) const {
    const JournalEntry* entry = find(Kind::kExperiment, std::to_string(experiment));
    std::int64_t target = 0;
    if (entry == nullptr || !parse_number(std::string_view(entry->digest), target))
        return std::nullopt;
    return target;
}

PutDocument Journal::put_target(ExperimentId experiment, ExperimentId target) {
    return put(Kind::kExperiment, std::to_string(experiment), {true, std::to_string(target)});
}

}  // namespace tune::tracker
