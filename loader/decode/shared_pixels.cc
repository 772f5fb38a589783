// The file: a header, one place for each sample (0: not here; else where its image begins), images.
// The header and the places are allocated when the file is made and images are written by pwrite,
// so that a full file system is an error of a call and not a signal. Room is given out by adding to
// one number; what a killed process had been given is lost until the file goes.

#include "loader/decode/shared_pixels.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

namespace tune::loader {
namespace {

constexpr std::uint64_t kFileMark = 0x31736c7869702d74ULL;  // changes with the layout
constexpr std::uint64_t kPlaceAlignment = 64;
constexpr const char* kPrefix = "tune-decoded-";
/// The file may be removed between being opened and being locked.
constexpr int kOpenTries = 16;

std::uint64_t aligned(std::uint64_t bytes) {
    return (bytes + kPlaceAlignment - 1) / kPlaceAlignment * kPlaceAlignment;
}

Error shared_error(const char* what, const std::filesystem::path& path, int reason) {
    return Error{Code::kPermissionDenied, std::string("cannot ") + what +
                                              " the decoded images that are shared in '" +
                                              path.string() + "': " + std::strerror(reason)};
}

bool is_linked(int fd) {
    struct stat found = {};
    return fstat(fd, &found) == 0 && found.st_nlink > 0;
}

/// Removes files of dead processes. One that somebody opens at this moment is opened anew by them.
void sweep(const std::filesystem::path& folder) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
        if (!entry.path().filename().string().starts_with(kPrefix)) continue;
        const UniqueFd file(::open(entry.path().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
        if (file && flock(file.get(), LOCK_EX | LOCK_NB) == 0) unlink(entry.path().c_str());
    }
}

}  // namespace

struct SharedPixels::Header {
    std::uint64_t magic;
    std::uint64_t bytes;
    std::uint64_t samples;
    std::uint64_t used;  // grows beyond `bytes` when there is no room
};

struct SharedPixels::Image {
    std::int32_t width;
    std::int32_t height;
    std::int32_t channels;
    std::int32_t padding[13];
};

SharedPixels::SharedPixels(UniqueFd file, std::filesystem::path path, std::byte* memory,
                           std::size_t bytes, std::int64_t samples)
    : file_(std::move(file)),
      path_(std::move(path)),
      memory_(memory),
      bytes_(bytes),
      samples_(samples) {}

SharedPixels::~SharedPixels() {
    munmap(memory_, bytes_);
    if (flock(file_.get(), LOCK_EX | LOCK_NB) == 0) unlink(path_.c_str());
}

Result<std::shared_ptr<SharedPixels>> SharedPixels::open(const std::filesystem::path& folder,
                                                         const std::string& digest,
                                                         std::int64_t samples,
                                                         std::uint64_t bytes_max) {
    const std::filesystem::path path = folder / (kPrefix + digest);
    const std::uint64_t table =
        aligned(sizeof(Header) + static_cast<std::uint64_t>(samples) * sizeof(std::uint64_t));
    if (bytes_max <= table)
        return Error{Code::kInvalidParameterValue,
                     "decoded_cache_limit must be more than " + std::to_string(table) +
                         " bytes, which the table of " + std::to_string(samples) +
                         " samples takes; it is " + std::to_string(bytes_max)};
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    if (failed) return shared_error("make the folder of", folder, failed.value());
    sweep(folder);
    for (int i = 0; i < kOpenTries; ++i) {
        UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!file) return shared_error("open", path, errno);
        Header header = {};
        if (flock(file.get(), LOCK_EX | LOCK_NB) == 0 && is_linked(file.get())) {
            header = {kFileMark, bytes_max, static_cast<std::uint64_t>(samples), table};
            if (ftruncate(file.get(), 0) != 0 ||
                ftruncate(file.get(), static_cast<off_t>(bytes_max)) != 0)
                return shared_error("size", path, errno);
            if (const int reason = posix_fallocate(file.get(), 0, static_cast<off_t>(table)))
                return shared_error("make room for", path, reason);
            if (pwrite(file.get(), &header, sizeof header, 0) != sizeof header)
                return shared_error("write", path, errno);
        }
        // In common with all who read; waits while somebody else makes the file.
        if (flock(file.get(), LOCK_SH) != 0) return shared_error("lock", path, errno);
        if (!is_linked(file.get()) ||
            pread(file.get(), &header, sizeof header, 0) != sizeof header ||
            header.magic != kFileMark)
            continue;  // it was removed, or its maker died: once more
        if (header.samples != static_cast<std::uint64_t>(samples))
            return Error{Code::kDataLoss, "'" + path.string() + "' is of other data"};
        void* memory =
            mmap(nullptr, header.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
        if (memory == MAP_FAILED) return shared_error("map", path, errno);
        return std::shared_ptr<SharedPixels>(new SharedPixels(
            std::move(file), path, static_cast<std::byte*>(memory), header.bytes, samples));
    }
    return shared_error("open", path, EBUSY);
}

SharedPixels::Header& SharedPixels::header() const {
    return *reinterpret_cast<Header*>(memory_);
}

std::uint64_t* SharedPixels::places() const {
    return reinterpret_cast<std::uint64_t*>(memory_ + sizeof(Header));
}

std::optional<PixelView> SharedPixels::find(std::int64_t sample) const {
    if (sample < 0 || sample >= samples_) return {};
    const std::uint64_t place = std::atomic_ref(places()[sample]).load(std::memory_order_acquire);
    if (place == 0 || place > bytes_ - sizeof(Image)) return {};
    Image image = {};
    std::memcpy(&image, memory_ + place, sizeof image);
    const bool is_sound = image.width > 0 && image.height > 0 &&
                          image.width <= kImagePixelsMax / image.height &&
                          (image.channels == 1 || image.channels == 3);
    const std::uint64_t size = is_sound ? static_cast<std::uint64_t>(image.width) *
                                              static_cast<std::uint64_t>(image.height) *
                                              static_cast<std::uint64_t>(image.channels)
                                        : 0;
    if (!is_sound || size > bytes_ - place - sizeof image) return {};
    return PixelView{reinterpret_cast<const std::uint8_t*>(memory_ + place + sizeof image),
                     image.width,
                     image.height,
                     image.channels,
                     image.channels,
                     static_cast<std::ptrdiff_t>(image.width) * image.channels};
}

bool SharedPixels::has_room(std::size_t bytes) const {
    const std::uint64_t used = std::atomic_ref(header().used).load(std::memory_order_relaxed);
    return used <= bytes_ && aligned(sizeof(Image) + bytes) <= bytes_ - used;
}

void SharedPixels::put(std::int64_t sample, const PixelView& pixels) {
    const auto row_bytes =
        static_cast<std::size_t>(pixels.width) * static_cast<std::size_t>(pixels.channels);
    const std::size_t size = row_bytes * static_cast<std::size_t>(pixels.height);
    const bool is_dense = pixels.pixel_stride == pixels.channels &&
                          pixels.row_stride == static_cast<std::ptrdiff_t>(row_bytes);
    if (!is_dense || !has_room(size) || sample < 0 || sample >= samples_) return;
    const std::uint64_t taken = aligned(sizeof(Image) + size);
    const std::uint64_t place = std::atomic_ref(header().used).fetch_add(taken);
    if (place > bytes_ || taken > bytes_ - place) return;
    const Image image = {pixels.width, pixels.height, pixels.channels, {}};
    const auto write = [&](const void* from, std::size_t bytes, std::uint64_t at) {
        return pwrite(file_.get(), from, bytes, static_cast<off_t>(at)) ==
               static_cast<ssize_t>(bytes);
    };
    if (!write(&image, sizeof image, place) || !write(pixels.data, size, place + sizeof image))
        return;  // the file system is full
    std::atomic_ref(places()[sample]).store(place, std::memory_order_release);
}

}  // namespace tune::loader
