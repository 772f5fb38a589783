#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace tune {

void check_failed(std::string_view condition, std::string_view message,
                  std::source_location where) {
    std::fprintf(stderr, "%s:%u: %s: check failed: %.*s (%.*s)\n", where.file_name(), where.line(),
                 where.function_name(), static_cast<int>(message.size()), message.data(),
                 static_cast<int>(condition.size()), condition.data());
    std::abort();
}

}  // namespace tune
