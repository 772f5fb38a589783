#include "tests/bench/loader/jpeg_file.h"

#include <cstddef>
#include <cstdio>
// After cstdio.
#include <jpeglib.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace tune::loader {

std::string jpeg_file(int number) {
    std::vector<std::uint8_t> pixels(std::size_t{kJpegWidth} * kJpegHeight * 3);
    for (int y = 0; y < kJpegHeight; ++y)
        for (int x = 0; x < kJpegWidth; ++x)
            for (int c = 0; c < 3; ++c)
                pixels[static_cast<std::size_t>((y * kJpegWidth + x) * 3 + c)] =
                    static_cast<std::uint8_t>(
                        127 + 80 * std::sin((x + 3 * number) / 9.0 + c) * std::cos(y / 13.0) +
                        (x * 7919 + y * 104729 + number) % 41);
    jpeg_compress_struct info = {};
    jpeg_error_mgr errors = {};
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    unsigned char* bytes = nullptr;
    unsigned long size = 0;
    jpeg_mem_dest(&info, &bytes, &size);
    info.image_width = kJpegWidth;
    info.image_height = kJpegHeight;
    info.input_components = 3;
    info.in_color_space = JCS_RGB;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, 90, TRUE);
    jpeg_start_compress(&info, TRUE);
    while (info.next_scanline < info.image_height) {
        JSAMPROW row = pixels.data() + std::size_t{info.next_scanline} * kJpegWidth * 3;
        jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    std::string file(reinterpret_cast<char*>(bytes), size);
    jpeg_destroy_compress(&info);
    std::free(bytes);
    return file;
}

}  // namespace tune::loader
