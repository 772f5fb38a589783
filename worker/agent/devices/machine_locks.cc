// bind() of an abstract address succeeds for one socket of the machine at a time. It listens, so
// that who waits can connect to it: the connection breaks when the last descriptor is closed, which
// is the news that the name is free.

#include "worker/agent/devices/machine_locks.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace tune::worker {
namespace {

constexpr int kWaitingMax = 64;  // agents that wait for one name; a further one asks again later

struct Address {
    sockaddr_un name = {};
    socklen_t length = 0;
};

Address address_of(const std::string& name) {
    Address address;
    address.name.sun_family = AF_UNIX;
    const std::size_t count = std::min(name.size(), sizeof address.name.sun_path - 1);
    std::memcpy(address.name.sun_path + 1, name.data(), count);  // the leading 0: abstract
    address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + count);
    return address;
}

UniqueFd open_socket(int flags) {
    return UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
}

}  // namespace

Result<std::optional<UniqueFd>> lock_on_machine(const std::string& name) {
    UniqueFd lock = open_socket(0);
    const Address address = address_of(name);
    const auto* const raw = reinterpret_cast<const sockaddr*>(&address.name);
    if (lock && bind(lock.get(), raw, address.length) == 0 && listen(lock.get(), kWaitingMax) == 0)
        return std::optional<UniqueFd>(std::move(lock));
    if (lock && errno == EADDRINUSE) return std::optional<UniqueFd>();
    return Error{
        Code::kResourceExhausted,
        "cannot lock '" + name + "' against other agents of this machine: " + std::strerror(errno)};
}

std::optional<UniqueFd> wait_for_release(const std::string& name) {
    UniqueFd waiting = open_socket(SOCK_NONBLOCK);
    const Address address = address_of(name);
    const auto* const raw = reinterpret_cast<const sockaddr*>(&address.name);
    if (!waiting || connect(waiting.get(), raw, address.length) != 0) return std::nullopt;
    return waiting;
}

std::string gpu_lock_name(const std::string& uuid) {
    return "tune-agent-gpu-" + uuid;
}
std::string core_lock_name(int core) {
    return "tune-agent-core-" + std::to_string(core);
}

}  // namespace tune::worker
