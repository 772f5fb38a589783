#include "tracker/store/reads/read_documents.h"

namespace tune::tracker {

Result<std::vector<Document>> list_documents(sqlite::Connection& connection,
                                             std::string_view collection,
                                             std::string_view key_prefix) {
    // Keys from the prefix on, in the order of bytes; the first that does not start with it ends
    // them.
    TUNE_TRY(select, connection.prepare("SELECT key, json_text FROM documents "
                                        "WHERE collection = ? AND key >= ? ORDER BY key"));
    select.with(collection, key_prefix);
    std::vector<Document> documents;
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row || !select.text(0).starts_with(key_prefix)) return documents;
        documents.push_back(
            {std::string(collection), std::string(select.text(0)), std::string(select.text(1))});
    }
}

Result<std::vector<std::string>> list_document_keys(sqlite::Connection& connection,
                                                    std::string_view collection) {
    TUNE_TRY(select, connection.prepare("SELECT key FROM documents WHERE collection = ? "
                                        "ORDER BY key"));
    select.with(collection);
    std::vector<std::string> keys;
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return keys;
        keys.emplace_back(select.text(0));
    }
}

Result<std::optional<Document>> get_document(sqlite::Connection& connection,
                                             std::string_view collection, std::string_view key) {
    TUNE_TRY(select, connection.prepare("SELECT json_text FROM documents "
                                        "WHERE collection = ? AND key = ?"));
    TUNE_TRY(has_row, select.with(collection, key).step());
    if (!has_row) return std::optional<Document>();
    return std::optional<Document>(
        Document{std::string(collection), std::string(key), std::string(select.text(0))});
}

}  // namespace tune::tracker
