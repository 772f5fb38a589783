// What part of an image is wanted is decided from its header alone, so that a JPEG is decoded only
// there and only as finely as the result needs. Random draws are counted within one sample and
// keyed by (seed, column, epoch, sample id): nothing that happens elsewhere moves them.

#include "loader/decode/image_transform.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "loader/format/hash.h"
#include "loader/format/mds/encoding.h"
#include "loader/rows/row_set.h"

namespace tune::loader {
namespace {

constexpr std::int64_t kSideMax = 16'384;
/// As torchvision's RandomResizedCrop: then the middle is taken.
constexpr int kTriesForPart = 10;

/// Sebastiano Vigna's splitmix64.
std::uint64_t scrambled(std::uint64_t bits) {
    bits += 0x9e3779b97f4a7c15ULL;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
    return bits ^ (bits >> 31);
}

Result<void> check_image(const ImageOptions& options, const std::string& column) {
    const auto refuse = [&](const std::string& what) {
        return invalid_parameter("image column '" + column + "': " + what);
    };
    for (const std::int64_t side : {options.height, options.width})
        if (side < 1 || side > kSideMax)
            return refuse("height and width must lie in 1.." + std::to_string(kSideMax) +
                          ", one is " + std::to_string(side));
    if (options.channels != 1 && options.channels != 3)
        return refuse("channels must be 1 or 3, it is " + std::to_string(options.channels));
    if (options.shorter_side < 0 || options.shorter_side > kSideMax || options.border < 0 ||
        options.border > kSideMax)
        return refuse("shorter_side and border must lie in 0.." + std::to_string(kSideMax));
    if (!(options.flip >= 0.0 && options.flip <= 1.0))
        return refuse("flip is a probability, from 0 to 1");
    if (!(options.area_min > 0.0 && options.area_min <= options.area_max &&
          options.area_max <= 1.0 && options.ratio_min > 0.0 &&
          options.ratio_min <= options.ratio_max && options.ratio_max < 1e6))
        return refuse(
            "areas must satisfy 0 < area_min <= area_max <= 1, ratios 0 < ratio_min <= "
            "ratio_max");
    const bool is_float = options.dtype == Dtype::kFloat32 || options.dtype == Dtype::kFloat16;
    if (!is_float && options.dtype != Dtype::kUint8)
        return refuse("pixels become uint8, float16 or float32");
    for (const std::vector<double>* numbers : {&options.mean, &options.deviation}) {
        if (numbers->empty()) continue;
        if (!is_float) return refuse("mean and deviation need dtype float32 or float16");
        if (numbers->size() != static_cast<std::size_t>(options.channels))
            return refuse("mean and deviation need a number for each channel");
    }
    for (const double deviation : options.deviation)
        if (!(deviation > 0.0)) return refuse("a deviation must be larger than 0");
    return {};
}

/// Whether `shape` is [height, width] or [height, width, 1, 3 or 4].
bool is_image_shape(std::span<const std::int64_t> shape) {
    if (shape.size() != 2 && shape.size() != 3) return false;
    return shape.size() == 2 || shape[2] == 1 || shape[2] == 3 || shape[2] == 4;
}

PixelView view_of(const std::uint8_t* data, std::int64_t width, std::int64_t height, int stored) {
    const int used = stored == 1 ? 1 : 3;
    return {data,
            static_cast<int>(width),
            static_cast<int>(height),
            used,
            stored,
            static_cast<std::ptrdiff_t>(width) * stored};
}

/// mosaicml-streaming's "pil": width, height, bytes of the mode; the mode; the pixels.
Result<PixelView> pil_pixels(std::span<const std::byte> stored) {
    std::array<std::uint32_t, 3> head = {};
    if (stored.size() < sizeof head) return Error{Code::kDataLoss, "the image has no header"};
    std::memcpy(head.data(), stored.data(), sizeof head);
    stored = stored.subspan(sizeof head);
    if (head[2] > stored.size()) return Error{Code::kDataLoss, "the image's mode is cut off"};
    const std::string_view mode(reinterpret_cast<const char*>(stored.data()), head[2]);
    const int channels = mode == "L" ? 1 : mode == "RGB" ? 3 : mode == "RGBA" ? 4 : 0;
    if (channels == 0)
        return Error{Code::kNotImplemented, "an image of mode '" + std::string(mode.substr(0, 8)) +
                                                "' is not read; L, RGB and RGBA are"};
    TUNE_TRY(size, checked_size(head[0], head[1]));
    stored = stored.subspan(head[2]);
    if (stored.size() != static_cast<std::size_t>(size.width) *
                             static_cast<std::size_t>(size.height) *
                             static_cast<std::size_t>(channels))
        return Error{Code::kDataLoss, "the image's pixels do not fill its width and height"};
    return view_of(reinterpret_cast<const std::uint8_t*>(stored.data()), size.width, size.height,
                   channels);
}

/// Luminance as Pillow has it, in `memory`.
PixelView grey_of(const PixelView& from, std::vector<std::uint8_t>& memory) {
    memory.resize(static_cast<std::size_t>(from.width) * static_cast<std::size_t>(from.height));
    std::uint8_t* to = memory.data();
    for (int y = 0; y < from.height; ++y) {
        const std::uint8_t* pixel = from.data + y * from.row_stride;
        for (int x = 0; x < from.width; ++x, pixel += from.pixel_stride)
            *to++ = static_cast<std::uint8_t>(
                (pixel[0] * 19595U + pixel[1] * 38470U + pixel[2] * 7471U + 0x8000U) >> 16);
    }
    return view_of(memory.data(), from.width, from.height, 1);
}

}  // namespace

/// Uniform numbers, one after the other, for one image.
class ImageTransform::Draws {
public:
    Draws(std::uint64_t key, std::int64_t epoch, std::int64_t sample_id)
        : state_(scrambled(scrambled(key ^ static_cast<std::uint64_t>(epoch)) ^
                           static_cast<std::uint64_t>(sample_id))) {}

    /// In [0, 1).
    [[nodiscard]] double unit() {
        state_ = scrambled(state_);
        return static_cast<double>(state_ >> 11) * 0x1p-53;
    }
    /// In [0, last].
    [[nodiscard]] int up_to(int last) {
        return std::min(last, static_cast<int>(unit() * (last + 1.0)));
    }

private:
    std::uint64_t state_;
};

Result<ImageTransform> ImageTransform::make(const ImageOptions& options, const ColumnInfo& stored,
                                            std::uint64_t seed) {
    TUNE_TRY_VOID(check_image(options, stored.name));
    ImageTransform made;
    made.options_ = options;
    made.stored_ = stored;
    const std::string_view encoding = stored.encoding;
    if (stored.fixed && stored.dtype == Dtype::kUint8 && is_image_shape(stored.shape))
        made.kind_ = Stored::kSizedArray;
    else if (!stored.fixed && (encoding == "ndarray:uint8" || encoding == "ndarray"))
        made.kind_ = Stored::kArray;
    else if (encoding == "pil")
        made.kind_ = Stored::kPil;
    else if (stored.fixed || (encoding != "jpeg" && encoding != "png" && encoding != "bytes"))
        return invalid_parameter("column '" + stored.name + "' (" + stored.encoding +
                                 ") holds no images; jpeg, png, bytes, pil and ndarray:uint8 of "
                                 "[height, width, channels] can");
    const std::string hash = digest_of(stored.name);
    std::uint64_t name_key = 0;
    std::memcpy(&name_key, hash.data(), sizeof name_key);
    made.key_ = scrambled(seed ^ scrambled(name_key));

    ColumnInfo& column = made.column_;
    column = stored;
    column.fixed = true;
    column.dtype = options.dtype;
    column.stored = stored.encoding;
    column.shape = options.layout == ImageOptions::Layout::kHwc
                       ? std::vector<std::int64_t>{options.height, options.width, options.channels}
                       : std::vector<std::int64_t>{options.channels, options.height, options.width};
    column.encoding = "ndarray:" + std::string(dtype_name(options.dtype)) + ":" +
                      std::to_string(column.shape[0]) + "," + std::to_string(column.shape[1]) +
                      "," + std::to_string(column.shape[2]);
    column.sample_bytes = dtype_bytes(options.dtype) *
                          static_cast<std::size_t>(options.height * options.width) *
                          static_cast<std::size_t>(options.channels);
    for (std::size_t c = 0; c < 3; ++c)
        for (std::size_t byte = 0; byte < 256; ++byte) {
            double value = static_cast<double>(byte) / 255.0;
            if (c < options.mean.size()) value -= options.mean[c];
            if (c < options.deviation.size()) value /= options.deviation[c];
            made.table_[c][byte] = options.dtype == Dtype::kUint8 ? static_cast<std::uint32_t>(byte)
                                   : options.dtype == Dtype::kFloat16
                                       ? half_from_double(value)
                                       : std::bit_cast<std::uint32_t>(static_cast<float>(value));
        }
    return made;
}

Result<PixelView> ImageTransform::array_pixels(std::span<const std::byte> stored) const {
    std::vector<std::int64_t> shape = stored_.shape;
    if (kind_ == Stored::kArray) {
        TUNE_TRY(encoding, parse_encoding(stored_.encoding));
        TUNE_TRY(array, decode_array(encoding, stored));
        if (array.dtype != Dtype::kUint8 || !is_image_shape(array.shape))
            return Error{Code::kDataLoss,
                         "the array is no image: it is not uint8 of [height, width, channels]"};
        shape = array.shape;
        stored = array.bytes;
    }
    TUNE_TRY(size, checked_size(shape[1], shape[0]));
    return view_of(reinterpret_cast<const std::uint8_t*>(stored.data()), size.width, size.height,
                   shape.size() == 2 ? 1 : static_cast<int>(shape[2]));
}

/// All of `box` as all of the result.
ImageTransform::Cut ImageTransform::whole(const ImageBox& box) const {
    const auto width = static_cast<int>(options_.width);
    const auto height = static_cast<int>(options_.height);
    return {{box, width, height, 0, 0, width, height}};
}

ImageTransform::Cut ImageTransform::random_part(ImageSize size, Draws& draws) const {
    const double area = static_cast<double>(size.width) * size.height;
    const double log_ratio_min = std::log(options_.ratio_min);
    const double log_ratio_max = std::log(options_.ratio_max);
    ImageBox box;
    bool is_found = false;
    for (int i = 0; i < kTriesForPart && !is_found; ++i) {
        const double part =
            area * (options_.area_min + draws.unit() * (options_.area_max - options_.area_min));
        const double ratio =
            std::exp(log_ratio_min + draws.unit() * (log_ratio_max - log_ratio_min));
        const double width = std::round(std::sqrt(part * ratio));
        const double height = std::round(std::sqrt(part / ratio));
        if (width < 1 || height < 1 || width > size.width || height > size.height) continue;
        box = {static_cast<double>(draws.up_to(size.width - static_cast<int>(width))),
               static_cast<double>(draws.up_to(size.height - static_cast<int>(height))), width,
               height};
        is_found = true;
    }
    if (!is_found) {  // the largest middle part of an allowed ratio
        const double ratio = std::clamp(static_cast<double>(size.width) / size.height,
                                        options_.ratio_min, options_.ratio_max);
        box.width = std::max(1.0, std::round(std::min<double>(size.width, size.height * ratio)));
        box.height = std::max(1.0, std::round(std::min<double>(size.height, size.width / ratio)));
        box.left = std::floor((size.width - box.width) / 2);
        box.top = std::floor((size.height - box.height) / 2);
    }
    return whole(box);
}

/// A crop of the image, resized first where that is asked for.
Result<ImageTransform::Cut> ImageTransform::placed_part(ImageSize size, Draws& draws) const {
    const bool is_random = options_.fit == ImageOptions::Fit::kRandomCrop;
    const std::int64_t stored = std::min(size.width, size.height);
    std::int64_t shorter = options_.shorter_side;
    if (shorter == 0) shorter = is_random ? stored : std::min(options_.height, options_.width);
    const auto width = static_cast<int>(std::max<std::int64_t>(1, shorter * size.width / stored));
    const auto height = static_cast<int>(std::max<std::int64_t>(1, shorter * size.height / stored));
    const int border = is_random ? static_cast<int>(options_.border) : 0;
    const int spare_x = width + 2 * border - static_cast<int>(options_.width);
    const int spare_y = height + 2 * border - static_cast<int>(options_.height);
    if (spare_x < 0 || spare_y < 0)
        return invalid_parameter(
            "an image of " + std::to_string(size.width) + " x " + std::to_string(size.height) +
            " is too small for a crop of " + std::to_string(options_.width) + " x " +
            std::to_string(options_.height) + "; raise shorter_side or border");
    const auto place = [&](int spare) {
        // To even halves, as Python's round().
        return is_random ? draws.up_to(spare) : static_cast<int>(std::nearbyint(spare / 2.0));
    };
    const int left = place(spare_x) - border;
    const int top = place(spare_y) - border;
    Cut cut;
    cut.part.box = {0, 0, static_cast<double>(size.width), static_cast<double>(size.height)};
    cut.part.width = width;
    cut.part.height = height;
    cut.part.window_left = std::clamp(left, 0, width);
    cut.part.window_top = std::clamp(top, 0, height);
    cut.part.window_width =
        std::clamp(left + static_cast<int>(options_.width), 0, width) - cut.part.window_left;
    cut.part.window_height =
        std::clamp(top + static_cast<int>(options_.height), 0, height) - cut.part.window_top;
    cut.left = cut.part.window_left - left;
    cut.top = cut.part.window_top - top;
    return cut;
}

Result<ImageTransform::Cut> ImageTransform::cut(ImageSize size, Draws& draws) const {
    // Drawn first, so that it does not depend on how many tries a part took.
    const bool is_mirrored = draws.unit() < options_.flip;
    Cut found;
    switch (options_.fit) {
        case ImageOptions::Fit::kStretch:
            found =
                whole({0, 0, static_cast<double>(size.width), static_cast<double>(size.height)});
            break;
        case ImageOptions::Fit::kRandomResizedCrop: found = random_part(size, draws); break;
        case ImageOptions::Fit::kCentreCrop:
        case ImageOptions::Fit::kRandomCrop: {
            TUNE_TRY(placed, placed_part(size, draws));
            found = placed;
            break;
        }
    }
    found.is_mirrored = is_mirrored;
    return found;
}

Result<void> ImageTransform::apply(std::span<const std::byte> stored, std::int64_t epoch,
                                   std::int64_t sample_id, std::byte* to,
                                   ImageMemory& memory) const {
    Draws draws(key_, epoch, sample_id);
    PixelView pixels;
    Cut found;
    std::optional<PixelView> shared;
    if (shared_) {
        TUNE_TRY(image, shared_image(stored, sample_id, memory.decoded));
        shared = image;
    }
    if (shared) {
        pixels = *shared;
        TUNE_TRY(wanted, cut({pixels.width, pixels.height}, draws));
        found = wanted;
    } else if (kind_ == Stored::kFile) {
        TUNE_TRY(size, image_file_size(stored));
        TUNE_TRY(wanted, cut(size, draws));
        found = wanted;
        TUNE_TRY(decoded, decode_part(stored, found.part, memory.decoded));
        pixels = decoded;
    } else {
        TUNE_TRY(view, kind_ == Stored::kPil ? pil_pixels(stored) : array_pixels(stored));
        pixels = view;
        TUNE_TRY(wanted, cut({pixels.width, pixels.height}, draws));
        found = wanted;
    }
    if (pixels.channels == 3 && options_.channels == 1) pixels = grey_of(pixels, memory.grey);

    const Resampling& part = found.part;
    const auto channels = static_cast<std::size_t>(pixels.channels);
    const auto width = static_cast<std::size_t>(options_.width);
    const std::size_t whole_bytes = width * static_cast<std::size_t>(options_.height) * channels;
    const std::size_t part_row = static_cast<std::size_t>(part.window_width) * channels;
    const std::size_t part_bytes = part_row * static_cast<std::size_t>(part.window_height);
    const bool has_border = part_bytes < whole_bytes;
    if (!has_border && !found.is_mirrored && is_as_resized(pixels.channels)) {
        resize(pixels, part, reinterpret_cast<std::uint8_t*>(to), memory.resample);
        return {};
    }
    memory.resized.resize(part_bytes + (has_border ? whole_bytes : 0));
    if (part_bytes > 0) resize(pixels, part, memory.resized.data(), memory.resample);
    const std::uint8_t* result = memory.resized.data();
    if (has_border) {
        std::uint8_t* canvas = memory.resized.data() + part_bytes;
        std::memset(canvas, 0, whole_bytes);
        std::uint8_t* place = canvas + (static_cast<std::size_t>(found.top) * width +
                                        static_cast<std::size_t>(found.left)) *
                                           channels;
        for (std::size_t y = 0; part_row > 0 && y * part_row < part_bytes; ++y)
            std::memcpy(place + y * width * channels, result + y * part_row, part_row);
        result = canvas;
    }
    write(result, pixels.channels, found.is_mirrored, to);
    return {};
}

/// Whether resized pixels of so many channels are the result as they are.
bool ImageTransform::is_as_resized(int channels) const {
    return options_.dtype == Dtype::kUint8 && channels == options_.channels &&
           (options_.layout == ImageOptions::Layout::kHwc || channels == 1);
}

/// The whole image, from those that are shared or decoded and put among them; nothing where there
/// is no room.
Result<std::optional<PixelView>> ImageTransform::shared_image(
    std::span<const std::byte> file, std::int64_t sample_id,
    std::vector<std::uint8_t>& memory) const {
    if (auto known = shared_->find(sample_id)) return known;
    TUNE_TRY(size, image_file_size(file));
    const auto bytes = static_cast<std::size_t>(size.width) *
                       static_cast<std::size_t>(size.height) *
                       static_cast<std::size_t>(options_.channels);
    if (!shared_->has_room(bytes)) return std::optional<PixelView>();
    ImagePart whole;
    whole.box = {0, 0, static_cast<double>(size.width), static_cast<double>(size.height)};
    whole.channels = options_.channels;
    TUNE_TRY(decoded, decode_image_file(file, whole, memory));
    shared_->put(sample_id, decoded.pixels);
    return std::optional(decoded.pixels);
}

std::string ImageTransform::decoding() const {
    return stored_.name + " " + std::to_string(options_.channels);
}

/// The pixels that `part` is made from; `part` is moved along when they are fewer than those
/// stored.
Result<PixelView> ImageTransform::decode_part(std::span<const std::byte> file, Resampling& part,
                                              std::vector<std::uint8_t>& memory) const {
    const double x_scale = part.box.width / part.width;
    const double y_scale = part.box.height / part.height;
    ImagePart needed;
    needed.box = {part.box.left + part.window_left * x_scale,
                  part.box.top + part.window_top * y_scale, part.window_width * x_scale,
                  part.window_height * y_scale};
    needed.x_reach = std::max(1.0, x_scale);
    needed.y_reach = std::max(1.0, y_scale);
    needed.channels = options_.channels;
    if (options_.decodes_scaled && !shared_)  // whether there was room must change nothing
        needed.wanted = {std::max(part.window_width, 1), std::max(part.window_height, 1)};
    TUNE_TRY(decoded, decode_image_file(file, needed, memory));
    part.box.left = (part.box.left - needed.box.left) * decoded.x_scale + decoded.left;
    part.box.top = (part.box.top - needed.box.top) * decoded.y_scale + decoded.top;
    part.box.width *= decoded.x_scale;
    part.box.height *= decoded.y_scale;
    return decoded.pixels;
}

template <class T>
void ImageTransform::write_as(const std::uint8_t* pixels, int channels, bool is_mirrored,
                              std::byte* to) const {
    T* out = reinterpret_cast<T*>(to);
    const auto width = static_cast<std::ptrdiff_t>(options_.width);
    const auto height = static_cast<std::ptrdiff_t>(options_.height);
    const bool is_planar = options_.layout == ImageOptions::Layout::kChw;
    const std::ptrdiff_t step = is_planar ? 1 : options_.channels;
    for (int c = 0; c < options_.channels; ++c) {
        const auto& table = table_[static_cast<std::size_t>(c)];
        const int from_channel = channels == 1 ? 0 : c;
        for (std::ptrdiff_t y = 0; y < height; ++y) {
            const std::uint8_t* from = pixels + y * width * channels + from_channel;
            T* row = is_planar ? out + (c * height + y) * width
                               : out + y * width * options_.channels + c;
            if (is_mirrored)
                for (std::ptrdiff_t x = 0; x < width; ++x)
                    row[x * step] = static_cast<T>(table[from[(width - 1 - x) * channels]]);
            else
                for (std::ptrdiff_t x = 0; x < width; ++x)
                    row[x * step] = static_cast<T>(table[from[x * channels]]);
        }
    }
}

void ImageTransform::write(const std::uint8_t* pixels, int channels, bool is_mirrored,
                           std::byte* to) const {
    switch (dtype_bytes(options_.dtype)) {
        case 1: return write_as<std::uint8_t>(pixels, channels, is_mirrored, to);
        case 2: return write_as<std::uint16_t>(pixels, channels, is_mirrored, to);
        default: return write_as<std::uint32_t>(pixels, channels, is_mirrored, to);
    }
}

}  // namespace tune::loader
