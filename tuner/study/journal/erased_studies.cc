#include "tuner/study/journal/erased_studies.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tracker/store/reads/read_documents.h"
#include "tuner/study/journal/journal.h"

namespace tune::tuner {
namespace {

/// Documents that one write removes: a transaction stays small.
constexpr std::size_t kDocumentsAtOnce = 500;

/// The run of a removed study; empty where the document is none of ours.
std::string run_of(const tracker::Document& document) {
    const Result<Json> json = parse_json(document.json_text);
    if (!json || !json->is_object() || !json->contains("study")) return {};
    const Json& study = (*json)["study"];
    return study.is_object() ? study.value("run_id", "") : std::string();
}

Result<bool> is_gone(const tracker::Store& store, const std::string& run_id) {
    if (run_id.empty()) return false;
    const auto run = store.get_run_info(run_id);
    if (run) return false;
    if (run.error().code == Code::kResourceDoesNotExist) return true;
    return run.error();
}

Result<void> remove_trials(tracker::Store& store, const std::vector<std::string>& keys,
                           const std::string& study_id) {
    std::vector<tracker::Command> commands;
    const auto flush = [&]() -> Result<void> {
        if (commands.empty()) return {};
        TUNE_TRY_VOID(store.execute(tracker::Atomic{std::exchange(commands, {})}));
        return {};
    };
    for (const std::string& key : keys) {
        if (!key.starts_with(study_id + "/")) continue;
        commands.push_back(tracker::DeleteDocument{kTrialCollection, key});
        if (commands.size() == kDocumentsAtOnce) TUNE_TRY_VOID(flush());
    }
    return flush();
}

}  // namespace

Result<std::size_t> forget_purged_studies(tracker::Store& store) {
    TUNE_TRY(erased, store.list_documents(kErasedCollection));
    std::vector<std::string> purged;
    for (const tracker::Document& document : erased) {
        TUNE_TRY(gone, is_gone(store, run_of(document)));
        if (gone) purged.push_back(document.key);
    }
    if (purged.empty()) return std::size_t{0};
    TUNE_TRY(keys, store.snapshot([](tracker::sqlite::Connection& connection) {
        return tracker::list_document_keys(connection, kTrialCollection);
    }));
    for (const std::string& id : purged) {
        TUNE_TRY_VOID(remove_trials(store, keys, id));
        // Last: as long as it is there, the next call finds the rest.
        TUNE_TRY_VOID(store.execute(tracker::DeleteDocument{kErasedCollection, id}));
    }
    return purged.size();
}

}  // namespace tune::tuner
