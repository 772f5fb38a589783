#include "base/id.h"

#include <sys/random.h>

#include <vector>

#include "base/check.h"

namespace tune {

std::string random_hex(std::size_t byte_count) {
    std::vector<unsigned char> bytes(byte_count);
    // Up to 256 bytes getrandom never returns short once the pool is initialised (getrandom(2)).
    TUNE_CHECK(byte_count <= 256, "random_hex is for ids");
    const auto got = getrandom(bytes.data(), bytes.size(), 0);
    TUNE_CHECK(got == static_cast<ssize_t>(byte_count), "the kernel gave no random bytes");
    std::string text;
    text.reserve(byte_count * 2);
    for (const unsigned char byte : bytes) {
        text.push_back("0123456789abcdef"[byte >> 4]);
        text.push_back("0123456789abcdef"[byte & 15]);
    }
    return text;
}

}  // namespace tune
