// The build without Arrow C++.

#include "loader/tables/formats.h"

namespace tune::loader {

void use_arrow_formats() {}

}  // namespace tune::loader
