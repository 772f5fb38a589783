#include "loader/tables/formats.h"

#include "loader/rows/formats.h"
#include "loader/tables/delta/delta_table.h"
#include "loader/tables/parquet_table.h"

namespace tune::loader {

void use_arrow_formats() {
    add_format({"delta", holds_delta_log, open_delta});
    add_format({"parquet", holds_parquet, open_parquet_folder});
}

}  // namespace tune::loader
