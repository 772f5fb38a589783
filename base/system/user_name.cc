#include "base/system/user_name.h"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace tune {

std::string user_name() {
    for (const char* name : {"LOGNAME", "USER", "LNAME", "USERNAME"})
        if (const char* const value = std::getenv(name); value != nullptr && *value != '\0')
            return value;
    passwd account{};
    passwd* found = nullptr;
    std::array<char, 4096> texts{};
    if (::getpwuid_r(::getuid(), &account, texts.data(), texts.size(), &found) != 0 ||
        found == nullptr)
        return {};
    return found->pw_name;
}

}  // namespace tune
