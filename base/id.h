#pragma once

#include <cstddef>
#include <string>

namespace tune {

/// `byte_count` random bytes of the kernel as lower-case hex; 16 bytes make an MLflow run id.
/// Thread-safe.
[[nodiscard]] std::string random_hex(std::size_t byte_count);

}  // namespace tune
