#pragma once
// Agents and what waits, as GET tune/queue gives them, in words and tables.

#include <cstddef>
#include <string>

#include "base/json.h"

namespace tune::cli {

/// A table of at most `rows_max` agents: what each has, what of it is taken, and which trials have
/// it. Empty where there are none.
[[nodiscard]] std::string agents_table(const Json& queue, std::size_t rows_max);

/// Why the study starts no trial now, as a sentence without a full stop; empty: it does, or has
/// all that it asked for.
[[nodiscard]] std::string why_waiting(const Json& queue, const std::string& study);

}  // namespace tune::cli
