#pragma once
// Parquet and Delta for programs that link tune_loader_tables, and with it Arrow.

namespace tune::loader {

/// From here on Dataset reads Parquet and Delta tables. Call once at the start of a program; more
/// calls do nothing. In a build without Arrow it does nothing, and such tables are refused.
void use_arrow_formats();

}  // namespace tune::loader
