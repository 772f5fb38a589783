#pragma once

#include <string_view>

#include "base/result.h"
#include "tracker/sqlite/connection.h"
#include "tracker/store/store.h"

namespace tune::tracker {

/// "Logged model with ID 'm-..' not found."
[[nodiscard]] Error no_logged_model(std::string_view model_id);

[[nodiscard]] Result<LoggedModel> load_logged_model(sqlite::Connection& connection,
                                                    std::int64_t model_row);
/// Errors: kResourceDoesNotExist, also for a deleted model.
[[nodiscard]] Result<LoggedModel> get_logged_model(sqlite::Connection& connection,
                                                   std::string_view model_id);
[[nodiscard]] Result<Page<LoggedModel>> search_logged_models(sqlite::Connection& connection,
                                                             const SearchLoggedModels& query);

}  // namespace tune::tracker
