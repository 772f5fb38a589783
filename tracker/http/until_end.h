#pragma once
// For connections whose client has nothing more to say.

#include <array>
#include <memory>

#include "tracker/http/session/client_stream.h"

namespace tune::tracker {

/// What is dropped goes here; the stream owns it.
using DroppedBytes = std::array<char, 256>;

/// Reads and drops whatever still comes until the client or the stream itself closes the
/// connection, then calls owner->close(), which may be its second call. `stream` and `dropped` are
/// the owner's; it lives at least as long. Call it on the worker's thread.
template <class Owner>
void close_at_end(std::shared_ptr<Owner> owner, ClientStream& stream, DroppedBytes& dropped) {
    stream.async_read_some(
        dropped, [owner, &stream, &dropped](const boost::system::error_code& ec, std::size_t) {
            if (ec) return owner->close();
            close_at_end(owner, stream, dropped);
        });
}

}  // namespace tune::tracker
