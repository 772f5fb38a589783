#pragma once
// Passwords as they are stored: by scrypt, which takes time and memory on purpose.

#include <string>
#include <string_view>

#include "base/result.h"

namespace tune {

/// "scrypt:32768:8:1$<salt>$<hex>", as Werkzeug, and with it MLflow's server, writes it; 16 random
/// characters of salt. Cost: about 0.1 s and 32 MB. Errors: kResourceExhausted without the memory.
[[nodiscard]] Result<std::string> hash_password(std::string_view password);

/// Whether `stored` is the hash of `password`; false for what is no such hash, or one whose
/// parameters would cost more than four times the usual. Compares in constant time. Cost: as
/// hash_password(), whatever `password` is.
[[nodiscard]] bool check_password(std::string_view stored, std::string_view password);

}  // namespace tune
