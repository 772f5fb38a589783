#include "worker/agent/checkpoints/folder_record.h"

#include <nlohmann/json.hpp>
#include <system_error>

#include "base/json.h"
#include "base/system/file.h"
#include "base/text/percent.h"

namespace tune::worker {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kFolderRecordBytesMax = 64u << 10;

fs::path record_path(const fs::path& state, const std::string& key) {
    return state / (percent_encode(key, false) + ".json");
}

}  // namespace

FolderRecord read_folder_record(const fs::path& state, const std::string& key) {
    FolderRecord record;
    const Result<std::string> text = read_file(record_path(state, key), kFolderRecordBytesMax);
    const Result<Json> json = text ? parse_json(*text) : Result<Json>(text.error());
    if (!json || !json->is_object()) return record;
    const auto text_of = [&json](const char* name) {
        const auto found = json->find(name);
        return found != json->end() && found->is_string() ? found->get<std::string>() : "";
    };
    if (json->contains("attempt") && (*json)["attempt"].is_number_integer())
        record.attempt = (*json)["attempt"].get<int>();
    record.at = {text_of("store"), text_of("run_id")};
    return record;
}

Result<void> write_folder_record(const fs::path& state, const std::string& key,
                                 const FolderRecord& record) {
    std::error_code error;
    fs::create_directories(state, error);
    if (error)
        return Error{Code::kInternalError,
                     "cannot make '" + state.string() + "': " + error.message()};
    return write_file_atomic(record_path(state, key), to_text(Json{{"attempt", record.attempt},
                                                                   {"store", record.at.store},
                                                                   {"run_id", record.at.run_id}}));
}

void remove_folder_record(const fs::path& state, const std::string& key) {
    std::error_code ignored;
    fs::remove(record_path(state, key), ignored);
}

bool is_filled(const fs::path& folder) {
    std::error_code error;
    return fs::is_directory(folder, error) && !fs::is_empty(folder, error) && !error;
}

fs::path staging_folder(const fs::path& state, const std::string& name) {
    return state / percent_encode(name, false);
}

}  // namespace tune::worker
