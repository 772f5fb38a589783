#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace tune {

void check_failed(std::string_view condition, std::string_view message, const char* file, int line,
                  const char* function) {
    std::fprintf(stderr, "%s:%d: %s: check failed: %.*s (%.*s)\n", file, line, function,
                 static_cast<int>(message.size()), message.data(),
                 static_cast<int>(condition.size()), condition.data());
    std::abort();
}

}  // namespace tune
