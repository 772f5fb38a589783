#include "base/id.h"

#include <sys/random.h>

#include <vector>

#include "base/check.h"
#include "base/text/hex.h"

namespace tune {

std::string random_hex(std::size_t byte_count) {
    std::vector<unsigned char> bytes(byte_count);
    // Up to 256 bytes getrandom never returns short once the pool is initialised (getrandom(2)).
    TUNE_CHECK(byte_count <= 256, "random_hex is for ids");
    const auto got = getrandom(bytes.data(), bytes.size(), 0);
    TUNE_CHECK(got == static_cast<ssize_t>(byte_count), "the kernel gave no random bytes");
    return hex_encode(bytes);
}

}  // namespace tune
