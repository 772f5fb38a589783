#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tracker/sqlite/connection.h"

namespace tune::tracker {

/// The tables of a database and their columns, by which MLflow's schemas of many versions are
/// read: a column that a version does not have yet reads as NULL. Views, virtual tables and
/// computed columns, whose values the file itself would make up, are as if they were not there.
class Columns {
public:
    [[nodiscard]] static Result<Columns> read(sqlite::Connection& connection);

    [[nodiscard]] bool has(std::string_view table) const;
    [[nodiscard]] bool has(std::string_view table, std::string_view column) const;
    /// "SELECT a, NULL, c FROM table" for `columns` a, b, c where there is no b.
    [[nodiscard]] std::string select(std::string_view table,
                                     const std::vector<std::string_view>& columns) const;
    [[nodiscard]] std::vector<std::string> tables() const;

private:
    std::map<std::string, std::set<std::string, std::less<>>, std::less<>> tables_;
};

}  // namespace tune::tracker
