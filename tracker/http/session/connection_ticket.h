#pragma once
// The place of one open connection in the server's count of them, in all and of its address.

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "tracker/http/worker.h"

namespace tune::tracker {

/// Counted until it goes. Owned by what serves the connection: the session, then a stream.
class ConnectionTicket {
public:
    /// Counts a connection from `address`.
    ConnectionTicket(std::shared_ptr<ServerContext> context, std::string address)
        : context_(std::move(context)), address_(std::move(address)) {
        const std::lock_guard lock(context_->mutex);
        count_ = ++context_->connection_count;
        count_of_address_ = ++context_->connections_of[address_];
    }
    ConnectionTicket(const ConnectionTicket&) = delete;
    ConnectionTicket& operator=(const ConnectionTicket&) = delete;
    ~ConnectionTicket() {
        if (context_->options.statistics) context_->options.statistics->connection_closed();
        const std::lock_guard lock(context_->mutex);
        give_up_share();
        if (--context_->connection_count == 0) context_->none_left.notify_all();
    }

    /// From now on it counts only in all, not to its address: it has shown a credential.
    void leave_share() {
        if (!has_share_) return;
        const std::lock_guard lock(context_->mutex);
        give_up_share();
    }

    /// The client's.
    [[nodiscard]] const std::string& address() const { return address_; }
    /// Open connections with this one when it came, in all and of its address.
    [[nodiscard]] std::size_t count() const { return count_; }
    [[nodiscard]] std::size_t count_of_address() const { return count_of_address_; }

private:
    /// With the context's mutex held.
    void give_up_share() {
        if (!std::exchange(has_share_, false)) return;
        const auto found = context_->connections_of.find(address_);
        if (--found->second == 0) context_->connections_of.erase(found);
    }

    const std::shared_ptr<ServerContext> context_;
    const std::string address_;
    std::size_t count_ = 0;
    std::size_t count_of_address_ = 0;
    bool has_share_ = true;
};

}  // namespace tune::tracker
