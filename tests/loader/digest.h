#pragma once
// Digests of ids as the golden vectors state them.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "loader/format/hash.h"

namespace tune::loader {

/// The first 16 hex digits of sha256 over the little-endian int64 values.
inline std::string digest16(const std::vector<std::int64_t>& ids) {
    return hash_hex("sha256", std::as_bytes(std::span(ids))).value().substr(0, 16);
}

}  // namespace tune::loader
