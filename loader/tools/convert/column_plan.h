#pragma once
// Which columns of a table become which columns of a data set.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "loader/format/dtype.h"

namespace tune::loader {

/// A column of the data set.
struct PlannedColumn {
    std::string name;
    std::string encoding = {};
    /// Columns of the table, by number; several are packed into one array.
    std::vector<std::size_t> sources = {};
    /// Element type of a packed array; nothing: the one source is stored as it is.
    std::optional<Dtype> packed_dtype = {};
};

struct ColumnRequest {
    /// "name" or "name:encoding", also several with commas between them
    /// ("a:int,b:ndarray:uint8:8,8"). None: every column that is not packed.
    std::vector<std::string> columns = {};
    /// "name=sources:type[:shape]", e.g. "image=p0..p63:uint8:8,8"; sources are "first..last" with
    /// the same letters before their numbers, or names with commas between them.
    std::vector<std::string> packs = {};
};

/// Works out the columns, sorted by name. `names`: of the table; `natural`: their encodings, asked
/// for only when needed (see needs_natural_encodings). Errors: kInvalidParameterValue in a sentence
/// that names the option and the column.
[[nodiscard]] Result<std::vector<PlannedColumn>> plan_columns(
    const ColumnRequest& request, const std::vector<std::string>& names,
    const std::vector<std::string>& natural);

/// Whether some column is wanted whose encoding was not given.
[[nodiscard]] bool needs_natural_encodings(const ColumnRequest& request);

}  // namespace tune::loader
