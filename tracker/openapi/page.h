#pragma once

#include <string>

#include "tracker/openapi/description.h"

namespace tune::openapi {

/// The operations as HTML: a section a tag, a folded block an operation with its fields.
[[nodiscard]] std::string operations_html(const Description& description);

/// The schemas as HTML; operations_html() links to them.
[[nodiscard]] std::string schemas_html(const Description& description);

}  // namespace tune::openapi
