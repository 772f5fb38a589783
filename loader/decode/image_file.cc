#include "loader/decode/image_file.h"

#include <cstring>

namespace tune::loader {
namespace {

bool begins_with(std::span<const std::byte> file, std::string_view magic) {
    return file.size() >= magic.size() && std::memcmp(file.data(), magic.data(), magic.size()) == 0;
}

bool is_jpeg(std::span<const std::byte> file) {
    return begins_with(file, "\xff\xd8\xff");
}

bool is_png(std::span<const std::byte> file) {
    return begins_with(file, "\x89PNG\r\n\x1a\n");
}

Error no_image(std::span<const std::byte> file) {
    return Error{Code::kDataLoss, file.empty() ? "the image is empty"
                                               : "the image is neither a JPEG nor a PNG file"};
}

}  // namespace

Result<ImageSize> checked_size(std::int64_t width, std::int64_t height) {
    if (width <= 0 || height <= 0 || width > kImagePixelsMax / height)
        return Error{Code::kDataLoss, "an image of " + std::to_string(width) + " x " +
                                          std::to_string(height) + " pixels is refused; up to " +
                                          std::to_string(kImagePixelsMax) + " are decoded"};
    return ImageSize{static_cast<int>(width), static_cast<int>(height)};
}

Result<ImageSize> image_file_size(std::span<const std::byte> file) {
    if (is_jpeg(file)) return jpeg_size(file);
    if (is_png(file)) return png_size(file);
    return no_image(file);
}

Result<DecodedImage> decode_image_file(std::span<const std::byte> file, const ImagePart& part,
                                       std::vector<std::uint8_t>& memory) {
    if (is_jpeg(file)) return decode_jpeg(file, part, memory);
    if (!is_png(file)) return no_image(file);
    TUNE_TRY(decoded, decode_png(file, memory));
    decoded.left = part.box.left;
    decoded.top = part.box.top;
    return decoded;
}

}  // namespace tune::loader
