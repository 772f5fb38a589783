#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tracker/sqlite/connection.h"
#include "tracker/store/types.h"

namespace tune::tracker {

[[nodiscard]] Result<std::vector<Document>> list_documents(sqlite::Connection& connection,
                                                           std::string_view collection,
                                                           std::string_view key_prefix);
/// In key order.
[[nodiscard]] Result<std::vector<std::string>> list_document_keys(sqlite::Connection& connection,
                                                                  std::string_view collection);
[[nodiscard]] Result<std::optional<Document>> get_document(sqlite::Connection& connection,
                                                           std::string_view collection,
                                                           std::string_view key);

}  // namespace tune::tracker
