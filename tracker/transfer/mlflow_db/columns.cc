#include "tracker/transfer/mlflow_db/columns.h"

namespace tune::tracker {

Result<Columns> Columns::read(sqlite::Connection& connection) {
    Columns columns;
    TUNE_TRY(select,
             connection.prepare("SELECT s.name, t.name FROM sqlite_schema s, "
                                "pragma_table_xinfo(s.name) t WHERE s.type = 'table' AND t.hidden "
                                "= 0 AND s.sql NOT LIKE 'CREATE VIRTUAL%'"));
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return columns;
        columns.tables_[std::string(select.text(0))].emplace(select.text(1));
    }
}

bool Columns::has(std::string_view table) const {
    return tables_.find(table) != tables_.end();
}

bool Columns::has(std::string_view table, std::string_view column) const {
    const auto found = tables_.find(table);
    return found != tables_.end() && found->second.find(column) != found->second.end();
}

std::string Columns::select(std::string_view table,
                            const std::vector<std::string_view>& columns) const {
    std::string sql = "SELECT ";
    for (std::size_t i = 0; i < columns.size(); ++i) {
        if (i > 0) sql += ", ";
        if (has(table, columns[i])) {
            sql += '"';
            sql += columns[i];
            sql += '"';
        } else {
            sql += "NULL";
        }
    }
    return sql + " FROM \"" + std::string(table) + "\"";
}

std::vector<std::string> Columns::tables() const {
    std::vector<std::string> names;
    for (const auto& [name, columns] : tables_) names.push_back(name);
    return names;
}

}  // namespace tune::tracker
