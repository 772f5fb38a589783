#include "loader/tables/formats.h"

#include "loader/rows/row_set.h"
#include "loader/tables/delta/delta_table.h"
#include "loader/tables/parquet_table.h"

namespace tune::loader {

void use_arrow_formats() {
    add_format({"delta", is_delta_table, open_delta});
    add_format({"parquet", is_parquet_folder, open_parquet_folder});
}

}  // namespace tune::loader
