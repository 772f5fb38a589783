// An untrusted JPEG or PNG. Property: an error, or pixels of the size that the header stated, of
// any part and reduction.

#include "loader/decode/image_file.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tune::fuzz;
    using namespace tune::loader;
    if (size < 4) return 0;
    // The last bytes choose the part.
    const auto choice = [&](std::size_t i) {
        return static_cast<double>(data[size - 1 - i]) / 255;
    };
    const auto file = std::as_bytes(std::span(data, size - 4));
    const auto stored = image_file_size(file);
    if (!stored) return 0;
    FUZZ_CHECK(stored->width > 0 && stored->height > 0);
    // Large ones cost seconds each, and show nothing that small ones do not.
    if (static_cast<std::int64_t>(stored->width) * stored->height > 1 << 20) return 0;
    ImagePart part;
    part.box.left = choice(0) * stored->width * 0.5;
    part.box.top = choice(1) * stored->height * 0.5;
    part.box.width = (stored->width - part.box.left) * choice(2);
    part.box.height = (stored->height - part.box.top) * choice(2);
    part.wanted = {static_cast<int>(choice(3) * 64), static_cast<int>(choice(3) * 64)};
    part.channels = data[size - 1] % 2 == 0 ? 1 : 3;
    std::vector<std::uint8_t> memory;
    const auto decoded = decode_image_file(file, part, memory);
    if (!decoded) return 0;
    const PixelView& pixels = decoded->pixels;
    FUZZ_CHECK(pixels.width > 0 && pixels.height > 0);
    FUZZ_CHECK(static_cast<std::size_t>(pixels.row_stride) *
                   static_cast<std::size_t>(pixels.height) <=
               memory.size());
    return 0;
}
