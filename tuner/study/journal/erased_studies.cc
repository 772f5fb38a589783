// A removed study is one document under its id; its trials' documents lie where they were, so that
// to restore it is to move one document back. Once `tune gc` has taken the study's run, none of
// them is of use: they are removed, the trials first, so that a stop in between leaves the study to
// be found again.

#include "tuner/study/journal/erased_studies.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tracker/store/reads/read_documents.h"
#include "tuner/study/journal/journal.h"

namespace tune::tuner {
namespace {

/// Documents that one write removes: a transaction stays small.
constexpr std::size_t kDocumentsAtOnce = 500;

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

std::optional<ErasedStudy> erased_from(const tracker::Document& document) {
    const Result<Json> json = parse_json(document.json_text);
    if (!json || !json->is_object() || !json->contains("study")) return std::nullopt;
    const Json& study = (*json)["study"];
    try {
        return ErasedStudy{.id = document.key,
                           .name = study.at("name").get<std::string>(),
                           .erased_ms = json->at("erased_ms").get<std::int64_t>(),
                           .experiment_id = study.at("experiment_id").get<std::int64_t>(),
                           .run_id = study.at("run_id").get<std::string>(),
                           .study_text = to_text(study)};
    } catch (const Json::exception&) {
        return std::nullopt;
    }
}

}  // namespace

std::string run_of_erased(const tracker::Document& document) {
    const Result<Json> json = parse_json(document.json_text);
    if (!json || !json->is_object() || !json->contains("study")) return {};
    const Json& study = (*json)["study"];
    return study.is_object() ? study.value("run_id", "") : std::string();
}

Result<ErasedStudy> find_erased_study(const tracker::Store& store, const std::string& name) {
    TUNE_TRY(documents, store.list_documents(kErasedCollection));
    std::optional<ErasedStudy> found;
    std::string names;
    for (const tracker::Document& document : documents) {
        const std::optional<ErasedStudy> erased = erased_from(document);
        if (!erased) continue;
        names += (names.empty() ? "'" : ", '") + erased->name + "'";
        if (erased->name == name && (!found || erased->erased_ms >= found->erased_ms))
            found = erased;
    }
    if (found) return *found;
    return Error{Code::kResourceDoesNotExist,
                 "there is no study '" + name + "' that was removed" +
                     (names.empty() ? "" : "; those that can be restored: " + names)};
}

Result<std::size_t> forget_purged_studies(tracker::Store& store) {
    TUNE_TRY(erased, store.list_documents(kErasedCollection));
    std::vector<std::string> purged;
    for (const tracker::Document& document : erased) {
        TUNE_TRY(gone, is_gone(store, run_of_erased(document)));
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
