#pragma once
// One image on its way into a batch: which part of it, mirrored or not, and its pixels as numbers.
// Internal to the loader.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "loader/dataset.h"
#include "loader/decode/column_transforms.h"
#include "loader/decode/image_file.h"
#include "loader/decode/resample.h"
#include "loader/decode/shared_pixels.h"

namespace tune::loader {

/// Memory of one thread that apply() uses again.
struct ImageMemory {
    std::vector<std::uint8_t> decoded;
    std::vector<std::uint8_t> grey;
    std::vector<std::uint8_t> resized;
    ResampleMemory resample;
};

/// Immutable, thread-safe.
class ImageTransform {
public:
    /// For column `stored`, whose batches become `column()`. `seed`: of the order. Errors:
    /// kInvalidParameterValue for options out of range and for columns that hold no images.
    [[nodiscard]] static Result<ImageTransform> make(const ImageOptions& options,
                                                     const ColumnInfo& stored, std::uint64_t seed);

    [[nodiscard]] const ColumnInfo& column() const { return column_; }

    /// Whether sharing decoded images helps: the stored ones are files.
    [[nodiscard]] bool decodes_files() const { return kind_ == Stored::kFile; }
    /// Of all that a decoded image depends on, apart from the data.
    [[nodiscard]] std::string decoding() const;
    void share(std::shared_ptr<SharedPixels> shared) { shared_ = std::move(shared); }

    /// Writes column().sample_bytes at `to`. Errors: kDataLoss for a damaged image,
    /// kInvalidParameterValue for one that is too small for its crop.
    [[nodiscard]] Result<void> apply(std::span<const std::byte> stored, std::int64_t epoch,
                                     std::int64_t sample_id, std::byte* to,
                                     ImageMemory& memory) const;

private:
    /// How the bytes of a sample are an image.
    enum class Stored { kFile, kPil, kArray, kSizedArray };
    /// A part of the stored image, and where it lies in the result; the rest of that is border.
    struct Cut {
        Resampling part;
        int left = 0;
        int top = 0;
        bool is_mirrored = false;
    };
    class Draws;

    [[nodiscard]] Result<PixelView> decode_part(std::span<const std::byte> file, Resampling& part,
                                                std::vector<std::uint8_t>& memory) const;
    [[nodiscard]] Result<std::optional<PixelView>> shared_image(
        std::span<const std::byte> file, std::int64_t sample_id,
        std::vector<std::uint8_t>& memory) const;
    [[nodiscard]] Result<PixelView> array_pixels(std::span<const std::byte> stored) const;
    [[nodiscard]] Result<Cut> cut(ImageSize size, Draws& draws) const;
    [[nodiscard]] Cut whole(const ImageBox& box) const;
    [[nodiscard]] Cut random_part(ImageSize size, Draws& draws) const;
    [[nodiscard]] Result<Cut> placed_part(ImageSize size, Draws& draws) const;
    [[nodiscard]] bool is_as_resized(int channels) const;
    void write(const std::uint8_t* pixels, int channels, bool is_mirrored, std::byte* to) const;
    template <class T>
    void write_as(const std::uint8_t* pixels, int channels, bool is_mirrored, std::byte* to) const;

    ImageOptions options_;
    Stored kind_ = Stored::kFile;
    ColumnInfo stored_;
    ColumnInfo column_;
    std::uint64_t key_ = 0;
    std::shared_ptr<SharedPixels> shared_ = {};  // nullptr: each decodes for itself
    /// What a byte of each channel becomes: the bits of one element.
    std::array<std::array<std::uint32_t, 256>, 3> table_ = {};
};

}  // namespace tune::loader
