#pragma once
// The safetensors file format (huggingface/safetensors): u64 header length, little-endian; a JSON
// header {name: {dtype, shape, data_offsets}} with an optional string map __metadata__; then the
// tensors' bytes, little-endian, C order, without holes. No code can hide in such a file, and
// Python reads it with `safetensors.safe_open`.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tune::train {

/// A header larger than this is refused, as in the reference implementation.
inline constexpr std::size_t kSafetensorsHeaderBytesMax = 100'000'000;

/// Bytes of one element of `dtype` ("F32", "I64", ...); 0 for an unknown name. Types below a byte
/// are not supported.
[[nodiscard]] std::size_t safetensors_element_bytes(std::string_view dtype);

/// A tensor to write, or one that was read; `data` is owned elsewhere and need not be aligned.
struct TensorBytes {
    std::string name;
    std::string dtype;
    std::vector<std::int64_t> shape;
    std::span<const std::byte> data;
};

/// The bytes of a file. Tensors are laid out as the reference implementation does it (larger
/// elements first, then by name), so that equal content gives equal bytes. Names differ from each
/// other and from "__metadata__" and sizes fit (checked: a programmer's error).
[[nodiscard]] std::string write_safetensors(std::vector<TensorBytes> tensors,
                                            const std::map<std::string, std::string>& metadata);

/// A parsed file. Movable; holds the bytes that the tensors point into.
class Safetensors {
public:
    /// Errors: kDataLoss in a sentence that says what is wrong: too short, header length beyond
    /// the file or the limit, header that is no JSON object of the right form, a key twice, an
    /// unknown dtype, a size that overflows or differs from shape and dtype, tensors that overlap,
    /// leave holes or do not fill the file.
    [[nodiscard]] static Result<Safetensors> parse(std::string bytes);

    /// Parses the file; errors also as of read_file.
    [[nodiscard]] static Result<Safetensors> read(const std::string& path);

    Safetensors(Safetensors&&) noexcept = default;
    Safetensors& operator=(Safetensors&&) noexcept = default;

    /// In the order of their bytes.
    [[nodiscard]] const std::vector<TensorBytes>& tensors() const { return tensors_; }
    [[nodiscard]] const std::map<std::string, std::string>& metadata() const { return metadata_; }
    /// nullptr when there is none. Cost: O(tensors).
    [[nodiscard]] const TensorBytes* find(std::string_view name) const;

private:
    Safetensors() = default;

    std::unique_ptr<const std::string> bytes_;  // on the heap: tensors point into it
    std::vector<TensorBytes> tensors_;
    std::map<std::string, std::string> metadata_;
};

}  // namespace tune::train
