// JPEG by libjpeg-turbo's classic interface, which can skip what lies outside a box. It reports
// errors by longjmp, so between setjmp and the end of a function there is nothing with a
// destructor: memory is the caller's, and the decompressor is destroyed by its owner.

#include <csetjmp>
#include <cstddef>
#include <cstdio>
// After cstddef and cstdio: it needs size_t and FILE.
#include <jpeglib.h>
// After jpeglib.h: the codes of warnings.
#include <jerror.h>

#include <algorithm>
#include <cmath>

#include "loader/decode/image_file.h"

namespace tune::loader {
namespace {

/// Pixels that are decoded around a box: the library rebuilds colours from their neighbours.
constexpr int kMargin = 2;

struct Jpeg {
    Jpeg() {
        info.err = jpeg_std_error(&errors);
        errors.error_exit = [](j_common_ptr common) {
            Jpeg& self = *static_cast<Jpeg*>(common->client_data);
            (*common->err->format_message)(common, self.message);
            std::longjmp(self.on_error, 1);
        };
        errors.emit_message = [](j_common_ptr common, int level) {
            if (level >= 0) return;  // traces
            Jpeg& self = *static_cast<Jpeg*>(common->client_data);
            const int code = common->err->msg_code;
            if (code != JWRN_JPEG_EOF && code != JWRN_HIT_MARKER) return;
            // The library would go on with grey.
            (*common->err->format_message)(common, self.message);
            std::longjmp(self.on_error, 1);
        };
        info.client_data = this;
    }
    ~Jpeg() { jpeg_destroy_decompress(&info); }
    Jpeg(const Jpeg&) = delete;
    Jpeg& operator=(const Jpeg&) = delete;

    [[nodiscard]] Error error(std::span<const std::byte> file) const {
        const std::size_t left = info.src ? info.src->bytes_in_buffer : file.size();
        return Error{Code::kDataLoss,
                     "the JPEG file is damaged near byte " +
                         std::to_string(file.size() - std::min(left, file.size())) + " of " +
                         std::to_string(file.size()) + ": " + message};
    }

    jpeg_decompress_struct info = {};
    jpeg_error_mgr errors = {};
    std::jmp_buf on_error = {};
    char message[JMSG_LENGTH_MAX] = "";
};

/// False: jpeg.message says why.
bool read_header(Jpeg& jpeg, std::span<const std::byte> file) {
    if (setjmp(jpeg.on_error)) return false;
    jpeg_create_decompress(&jpeg.info);
    jpeg.info.client_data = &jpeg;
    jpeg_mem_src(&jpeg.info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&jpeg.info, TRUE);
    return true;
}

/// The largest reduction, of 1, 2, 4, 8, that leaves `box` at least `wanted` large.
unsigned reduction(const ImageBox& box, ImageSize wanted) {
    unsigned by = 1;
    if (wanted.width <= 0 || wanted.height <= 0) return by;
    while (by < 8 && box.width / (2 * by) >= wanted.width && box.height / (2 * by) >= wanted.height)
        by *= 2;
    return by;
}

/// What is decoded, in pixels of the reduced image.
struct Region {
    JDIMENSION left = 0;
    JDIMENSION top = 0;
    JDIMENSION width = 0;
    JDIMENSION height = 0;
};

Region region_of(const ImagePart& part, unsigned by, JDIMENSION width, JDIMENSION height) {
    const auto low = [by](double at, JDIMENSION end) {
        const double first = std::max(0.0, std::floor(at / by) - kMargin);
        return std::min(static_cast<JDIMENSION>(first), end - 1);
    };
    const auto high = [by](double at, JDIMENSION end) {
        return std::min(end, static_cast<JDIMENSION>(std::max(1.0, std::ceil(at / by) + kMargin)));
    };
    const ImageBox& box = part.box;
    Region region;
    region.left = low(box.left - part.x_reach, width);
    region.top = low(box.top - part.y_reach, height);
    region.width =
        std::max(high(box.left + box.width + part.x_reach, width), region.left + 1) - region.left;
    region.height =
        std::max(high(box.top + box.height + part.y_reach, height), region.top + 1) - region.top;
    return region;
}

bool start(Jpeg& jpeg, int channels, unsigned by) {
    if (setjmp(jpeg.on_error)) return false;
    const bool has_black =
        jpeg.info.jpeg_color_space == JCS_CMYK || jpeg.info.jpeg_color_space == JCS_YCCK;
    jpeg.info.out_color_space = has_black ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg.info.scale_num = 1;
    jpeg.info.scale_denom = by;
    jpeg_start_decompress(&jpeg.info);
    return true;
}

/// Rows of `region` to `rows`, `row_bytes` apart.
bool read_rows(Jpeg& jpeg, const Region& region, std::uint8_t* rows, std::size_t row_bytes) {
    if (setjmp(jpeg.on_error)) return false;
    if (region.top > 0) jpeg_skip_scanlines(&jpeg.info, region.top);
    JSAMPROW row = rows;
    const JSAMPROW end = rows + region.height * row_bytes;
    while (row < end) {
        if (jpeg_read_scanlines(&jpeg.info, &row, 1) == 1) row += row_bytes;
    }
    // Rows below are not needed, and neither is the file's end.
    jpeg_abort_decompress(&jpeg.info);
    return true;
}

/// The library widens the region to whole blocks.
bool crop(Jpeg& jpeg, Region& region) {
    if (setjmp(jpeg.on_error)) return false;
    if (region.left > 0 || region.width < jpeg.info.output_width)
        jpeg_crop_scanline(&jpeg.info, &region.left, &region.width);
    return true;
}

/// Adobe's inverted cyan, magenta, yellow and black to `channels`, in place, rounded as Pillow
/// does.
void drop_black(std::uint8_t* pixels, std::size_t count, int channels) {
    const auto light = [](unsigned inverted_ink, unsigned black) {
        const unsigned product = (255 - inverted_ink) * black + 128;
        return black - ((product + (product >> 8)) >> 8);
    };
    std::uint8_t* to = pixels;
    for (std::size_t i = 0; i < count; ++i, to += channels) {
        const std::uint8_t* from = pixels + 4 * i;
        const unsigned red = light(from[0], from[3]);
        const unsigned green = light(from[1], from[3]);
        const unsigned blue = light(from[2], from[3]);
        if (channels == 1) {
            to[0] = static_cast<std::uint8_t>(
                (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
        } else {
            to[0] = static_cast<std::uint8_t>(red);
            to[1] = static_cast<std::uint8_t>(green);
            to[2] = static_cast<std::uint8_t>(blue);
        }
    }
}

}  // namespace

Result<ImageSize> jpeg_size(std::span<const std::byte> file) {
    Jpeg jpeg;
    if (!read_header(jpeg, file)) return jpeg.error(file);
    return checked_size(jpeg.info.image_width, jpeg.info.image_height);
}

Result<DecodedImage> decode_jpeg(std::span<const std::byte> file, const ImagePart& part,
                                 std::vector<std::uint8_t>& memory) {
    Jpeg jpeg;
    if (!read_header(jpeg, file)) return jpeg.error(file);
    TUNE_TRY_VOID(checked_size(jpeg.info.image_width, jpeg.info.image_height));
    const unsigned by = reduction(part.box, part.wanted);
    if (!start(jpeg, part.channels, by)) return jpeg.error(file);
    Region region = region_of(part, by, jpeg.info.output_width, jpeg.info.output_height);
    DecodedImage decoded;
    // Not exactly 1 / by where that does not divide the sides.
    decoded.x_scale = static_cast<double>(jpeg.info.output_width) / jpeg.info.image_width;
    decoded.y_scale = static_cast<double>(jpeg.info.output_height) / jpeg.info.image_height;
    if (!crop(jpeg, region)) return jpeg.error(file);
    const auto components = static_cast<std::size_t>(jpeg.info.output_components);
    const std::size_t row_bytes = region.width * components;
    memory.resize(row_bytes * region.height);
    if (!read_rows(jpeg, region, memory.data(), row_bytes)) return jpeg.error(file);
    if (components == 4)
        drop_black(memory.data(), std::size_t{region.width} * region.height, part.channels);
    const int channels = components == 4 ? part.channels : static_cast<int>(components);
    decoded.pixels = {memory.data(),
                      static_cast<int>(region.width),
                      static_cast<int>(region.height),
                      channels,
                      channels,
                      static_cast<std::ptrdiff_t>(region.width) * channels};
    decoded.left = part.box.left * decoded.x_scale - region.left;
    decoded.top = part.box.top * decoded.y_scale - region.top;
    return decoded;
}

}  // namespace tune::loader
