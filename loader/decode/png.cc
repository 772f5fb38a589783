// PNG by libpng, to 8 bits per channel without palette or transparency, as Pillow's convert gives
// them.
//
// libpng reports errors by longjmp, as libjpeg does (see jpeg.cc): between setjmp and the calls
// there are no objects with destructors, and messages are copied, since libpng makes some of them
// on the stack that the jump leaves.

#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "loader/decode/image_file.h"

namespace tune::loader {
namespace {

struct Png {
    explicit Png(std::span<const std::byte> bytes) : file(bytes) {
        reader = png_create_read_struct(
            PNG_LIBPNG_VER_STRING, this,
            [](png_structp png, png_const_charp text) {
                Png& self = *static_cast<Png*>(png_get_error_ptr(png));
                std::snprintf(self.message.data(), self.message.size(), "%s", text);
                png_longjmp(png, 1);
            },
            [](png_structp, png_const_charp) {});
        if (reader) info = png_create_info_struct(reader);
    }
    ~Png() { png_destroy_read_struct(&reader, &info, nullptr); }
    Png(const Png&) = delete;
    Png& operator=(const Png&) = delete;

    [[nodiscard]] Error error() const {
        return Error{Code::kDataLoss, "the PNG file is damaged near byte " + std::to_string(at) +
                                          " of " + std::to_string(file.size()) + ": " +
                                          (message[0] != 0 ? message.data() : "no memory")};
    }

    std::span<const std::byte> file;
    std::size_t at = 0;
    png_structp reader = nullptr;
    png_infop info = nullptr;
    /// A copy: libpng makes texts about chunks on its stack, which the jump leaves.
    std::array<char, 256> message = {};
};

void read_bytes(png_structp reader, png_bytep to, std::size_t size) {
    Png& png = *static_cast<Png*>(png_get_io_ptr(reader));
    if (size > png.file.size() - png.at) png_error(reader, "the file is cut off");
    std::memcpy(to, png.file.data() + png.at, size);
    png.at += size;
}

bool read_header(Png& png) {
    if (!png.reader || !png.info) return false;
    if (setjmp(png_jmpbuf(png.reader))) return false;
    png_set_read_fn(png.reader, &png, read_bytes);
    png_set_user_limits(png.reader, 1U << 30, 1U << 30);
    png_read_info(png.reader, png.info);
    return true;
}

/// One byte a channel, no palette, no transparency; 1 or 3 channels as stored.
bool simplify(Png& png) {
    if (setjmp(png_jmpbuf(png.reader))) return false;
    png_set_expand(png.reader);
    png_set_strip_16(png.reader);
    png_set_strip_alpha(png.reader);
    png_set_interlace_handling(png.reader);
    png_read_update_info(png.reader, png.info);
    return true;
}

bool read_rows(Png& png, png_bytep rows, std::size_t row_bytes, int passes, png_uint_32 height) {
    if (setjmp(png_jmpbuf(png.reader))) return false;
    for (int pass = 0; pass < passes; ++pass)
        for (png_uint_32 y = 0; y < height; ++y)
            png_read_row(png.reader, rows + y * row_bytes, nullptr);
    return true;
}

}  // namespace

Result<ImageSize> png_size(std::span<const std::byte> file) {
    Png png(file);
    if (!read_header(png)) return png.error();
    return checked_size(png_get_image_width(png.reader, png.info),
                        png_get_image_height(png.reader, png.info));
}

Result<DecodedImage> decode_png(std::span<const std::byte> file,
                                std::vector<std::uint8_t>& memory) {
    Png png(file);
    if (!read_header(png)) return png.error();
    const png_uint_32 height = png_get_image_height(png.reader, png.info);
    TUNE_TRY(size, checked_size(png_get_image_width(png.reader, png.info), height));
    const int passes = png_get_interlace_type(png.reader, png.info) == PNG_INTERLACE_NONE ? 1 : 7;
    if (!simplify(png)) return png.error();
    const int stored = png_get_channels(png.reader, png.info);
    const std::size_t row_bytes = png_get_rowbytes(png.reader, png.info);
    memory.resize(row_bytes * height);
    if (!read_rows(png, memory.data(), row_bytes, passes, height)) return png.error();
    DecodedImage decoded;
    decoded.pixels = {memory.data(), size.width, size.height,
                      stored,        stored,     static_cast<std::ptrdiff_t>(row_bytes)};
    return decoded;
}

}  // namespace tune::loader
