#pragma once
// Signatures by a private key, as JSON Web Tokens want them.

#include <string>

#include "base/result.h"

namespace tune {

/// The raw signature of `text` by RSA with SHA-256 (RS256 of RFC 7518). `pem`: a private key,
/// "-----BEGIN PRIVATE KEY-----". Errors: kInvalidParameterValue for what is no such key.
[[nodiscard]] Result<std::string> sign_rs256(const std::string& pem, const std::string& text);

}  // namespace tune
