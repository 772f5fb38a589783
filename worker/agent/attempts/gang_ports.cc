// A block is ours when its name is, and free when nobody listens on any of its ports. Between then
// and the start of the processes nothing holds the ports themselves: a program could only take one
// by its number.

#include "worker/agent/attempts/gang_ports.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/id.h"
#include "base/system/file.h"
#include "tuner/protocol.h"

namespace tune::worker {
namespace {

constexpr int kFirstPort = 20'032;
constexpr int kLastPort = 32'767;

/// The first port that the system may give to a connection.
int first_ephemeral() {
    const Result<std::string> text = read_file("/proc/sys/net/ipv4/ip_local_port_range");
    return text ? std::atoi(text->c_str()) : kLastPort + 1;
}

/// Whether nobody listens there, on any address.
bool is_free(int port) {
    const UniqueFd probe(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (probe) {
        sockaddr_in6 address = {};
        address.sin6_family = AF_INET6;
        address.sin6_addr = in6addr_any;
        address.sin6_port = htons(static_cast<std::uint16_t>(port));
        return bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    }
    const UniqueFd old(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    return old && bind(old.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

bool is_block_free(int first) {
    for (int port = first; port < first + tuner::kGangPorts; ++port)
        if (!is_free(port)) return false;
    return true;
}

/// The block's name, held while the descriptor is open; none: another agent has it.
UniqueFd lock_block(int first) {
    UniqueFd lock(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const std::string name = "tune-ports-" + std::to_string(first);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());  // after a NUL: no file
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (lock && bind(lock.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0)
        lock.reset();
    return lock;
}

}  // namespace

int GangPorts::find() {
    const int end = std::min(first_ephemeral(), kLastPort + 1);
    const int blocks = (end - kFirstPort) / tuner::kGangPorts;
    if (blocks <= 0) return 0;
    // Anywhere, so that agents that begin together seldom look at the same one.
    const auto start = std::strtoul(random_hex(4).c_str(), nullptr, 16);
    for (int i = 0; i < blocks; ++i) {
        const auto block = (start + static_cast<unsigned long>(i)) % static_cast<unsigned>(blocks);
        const int first = kFirstPort + static_cast<int>(block) * tuner::kGangPorts;
        if (held_.contains(first)) continue;
        UniqueFd lock = lock_block(first);
        if (!lock || !is_block_free(first)) continue;
        held_.emplace(first, std::move(lock));
        return first;
    }
    return 0;
}

int GangPorts::next() {
    const std::lock_guard lock(mutex_);
    if (next_ == 0) next_ = find();
    return next_;
}

void GangPorts::promise(int port) {
    const std::lock_guard lock(mutex_);
    if (port == 0 || next_ != port) return;
    next_ = 0;
    promised_.insert(port);
}

int GangPorts::take(int wanted, bool or_other) {
    const std::lock_guard lock(mutex_);
    if (promised_.erase(wanted) > 0) return wanted;
    return or_other ? find() : 0;
}

void GangPorts::give_back(int port) {
    const std::lock_guard lock(mutex_);
    held_.erase(port);
}

}  // namespace tune::worker
