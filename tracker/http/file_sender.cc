#include "tracker/http/file_sender.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "tracker/http/protocol/byte_range.h"

namespace tune::tracker {
namespace {

std::size_t piece_bytes(const FilePart& part, std::size_t bytes_max) {
    return static_cast<std::size_t>(std::min<std::uint64_t>(bytes_max, part.end - part.at));
}

bool is_byte_cached(int file, std::uint64_t at) {
    char byte = 0;
    const iovec target{&byte, 1};
    return ::preadv2(file, &target, 1, static_cast<off_t>(at), RWF_NOWAIT) == 1;
}

}  // namespace

bool is_cached(const FilePart& part, std::size_t bytes_max) {
    const int file = part.file->get();
    return is_byte_cached(file, part.at) &&
           is_byte_cached(file, part.at + piece_bytes(part, bytes_max) - 1);
}

SendOutcome send_piece(int socket, const FilePart& part) {
    auto offset = static_cast<off_t>(part.at);
    for (;;) {
        const ssize_t sent =
            ::sendfile(socket, part.file->get(), &offset, piece_bytes(part, kFilePieceBytes));
        if (sent > 0) return {static_cast<std::size_t>(sent), false};
        if (sent < 0 && errno == EINTR) continue;
        return {0, sent == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)};
    }
}

std::string read_piece(const FilePart& part) {
    std::string piece(piece_bytes(part, kReadPieceBytes), '\0');
    for (;;) {
        const ssize_t got =
            ::pread(part.file->get(), piece.data(), piece.size(), static_cast<off_t>(part.at));
        if (got < 0 && errno == EINTR) continue;
        piece.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        return piece;
    }
}

void block_sigpipe() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

UniqueFd duplicate_socket(int socket) {
    return UniqueFd(::fcntl(socket, F_DUPFD_CLOEXEC, 0));
}

FilePart choose_part(const FileBody& file, const Request& request, Response& response,
                     int& status) {
    response.headers.emplace_back("Accept-Ranges", "bytes");
    const std::string_view if_range = request.header("If-Range");
    const bool same_file = if_range.empty() || if_range == response.etag;
    const ByteRange range =
        parse_byte_range(same_file ? request.header("Range") : "", file.size_bytes);
    const std::string total = std::to_string(file.size_bytes);
    if (range.kind == ByteRange::Kind::kUnsatisfiable) {
        status = 416;
        response.headers.emplace_back("Content-Range", "bytes */" + total);
        return {};
    }
    if (range.kind == ByteRange::Kind::kPart) {
        status = 206;
        response.headers.emplace_back("Content-Range", "bytes " + std::to_string(range.begin) +
                                                           "-" + std::to_string(range.end - 1) +
                                                           "/" + total);
    }
    return {file.file, range.begin, range.end};
}

}  // namespace tune::tracker
