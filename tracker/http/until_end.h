#pragma once
// For connections whose client has nothing more to say.

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>

namespace tune::tracker {

/// What is dropped goes here; the stream owns it.
using DroppedBytes = std::array<char, 256>;

/// Reads and drops whatever still comes until the client or the stream itself closes the socket,
/// then calls stream->close(), which may be its second call. `socket` and `dropped` are the
/// stream's; it lives at least as long. Call it on the worker's thread.
template <class Stream>
void close_at_end(std::shared_ptr<Stream> stream, boost::asio::ip::tcp::socket& socket,
                  DroppedBytes& dropped) {
    socket.async_read_some(
        boost::asio::buffer(dropped),
        [stream, &socket, &dropped](const boost::system::error_code& ec, std::size_t) {
            if (ec) return stream->close();
            close_at_end(stream, socket, dropped);
        });
}

}  // namespace tune::tracker
