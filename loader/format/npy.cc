// The header of .npy is the text of a Python dictionary with three known keys. It is searched for
// those keys, not evaluated.

#include "loader/format/npy.h"

#include <zlib.h>

#include <charconv>
#include <cstring>
#include <optional>

#include "base/text/text.h"

namespace tune::loader {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
/// A claimed size of a deflated member beyond this is damage: deflate cannot grow data more.
constexpr std::size_t kDeflateRatioMax = 1040;

std::string_view chars_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class Number>
Number read_number(std::span<const std::byte> bytes, std::size_t at) {
    Number number = 0;
    std::memcpy(&number, bytes.data() + at, sizeof number);
    return number;
}

/// What follows 'key': in the header.
std::optional<std::string_view> value_of(std::string_view header, std::string_view key) {
    const std::size_t at = header.find("'" + std::string(key) + "'");
    if (at == std::string_view::npos) return std::nullopt;
    const std::size_t colon = header.find(':', at);
    if (colon == std::string_view::npos) return std::nullopt;
    return trimmed(header.substr(colon + 1));
}

std::optional<Dtype> dtype_of(std::string_view descr) {
    if (descr.size() < 5 || (descr[0] != '\'' && descr[0] != '"')) return std::nullopt;
    const char order = descr[1];
    const std::size_t end = descr.find(descr[0], 1);
    if (end == std::string_view::npos || (order != '<' && order != '|')) return std::nullopt;
    const std::string_view code = descr.substr(2, end - 2);
    constexpr std::pair<std::string_view, Dtype> kCodes[] = {
        {"u1", Dtype::kUint8},  {"b1", Dtype::kUint8}, {"i1", Dtype::kInt8},
        {"u2", Dtype::kUint16}, {"i2", Dtype::kInt16}, {"f2", Dtype::kFloat16},
        {"u4", Dtype::kUint32}, {"i4", Dtype::kInt32}, {"f4", Dtype::kFloat32},
        {"u8", Dtype::kUint64}, {"i8", Dtype::kInt64}, {"f8", Dtype::kFloat64}};
    for (const auto& [name, dtype] : kCodes)
        if (name == code) return dtype;
    return std::nullopt;
}

std::optional<std::vector<std::int64_t>> shape_of(std::string_view text) {
    std::vector<std::int64_t> shape;
    const std::size_t close = text.find(')');
    if (!text.starts_with('(') || close == std::string_view::npos) return std::nullopt;
    text = text.substr(1, close - 1);
    while (true) {
        text = trimmed(text);
        if (text.empty()) return shape;
        std::int64_t dimension = 0;
        const auto parsed = std::from_chars(text.data(), text.data() + text.size(), dimension);
        if (parsed.ec != std::errc{} || dimension < 0 || shape.size() >= 63) return std::nullopt;
        shape.push_back(dimension);
        text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
        if (text.starts_with(',')) text.remove_prefix(1);
    }
}

Result<std::string> inflate_member(std::span<const std::byte> packed, std::size_t size) {
    if (size > packed.size() * kDeflateRatioMax + 64) return data_loss("a .npz of impossible size");
    std::string out(size, '\0');
    z_stream stream{};
    if (inflateInit2(&stream, -15) != Z_OK) return data_loss("zlib does not start");
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
    stream.avail_in = static_cast<uInt>(packed.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    const int status = inflate(&stream, Z_FINISH);
    const bool is_whole = status == Z_STREAM_END && stream.avail_out == 0;
    inflateEnd(&stream);
    if (!is_whole) return data_loss("a .npz whose deflated data is damaged");
    return out;
}

/// The record of the central directory for `name`: what local headers leave out stands there.
struct Member {
    std::uint16_t method = 0;
    std::uint64_t packed = 0;
    std::uint64_t size = 0;
    std::uint64_t local_at = 0;
};

/// zip64 keeps large numbers in an extra field, in this order, as far as the usual ones are full.
void read_zip64(std::span<const std::byte> extra, Member& member) {
    while (extra.size() >= 4) {
        const auto id = read_number<std::uint16_t>(extra, 0);
        const auto length = read_number<std::uint16_t>(extra, 2);
        if (length > extra.size() - 4) return;
        std::span<const std::byte> field = extra.subspan(4, length);
        extra = extra.subspan(4 + std::size_t{length});
        if (id != 1) continue;
        for (std::uint64_t* number : {&member.size, &member.packed, &member.local_at}) {
            if (*number != 0xffffffff || field.size() < 8) continue;
            *number = read_number<std::uint64_t>(field, 0);
            field = field.subspan(8);
        }
    }
}

std::optional<Member> find_member(std::span<const std::byte> file, std::string_view name) {
    const std::string_view text = chars_of(file);
    const std::size_t end = text.rfind("PK\x05\x06");
    if (end == std::string_view::npos || file.size() - end < 22) return std::nullopt;
    std::size_t at = read_number<std::uint32_t>(file, end + 16);
    while (at + 46 <= end && text.substr(at, 4) == "PK\x01\x02") {
        const std::size_t name_bytes = read_number<std::uint16_t>(file, at + 28);
        const std::size_t extra_bytes = read_number<std::uint16_t>(file, at + 30);
        const std::size_t comment_bytes = read_number<std::uint16_t>(file, at + 32);
        const std::size_t next = at + 46 + name_bytes + extra_bytes + comment_bytes;
        if (next > end) return std::nullopt;
        if (text.substr(at + 46, name_bytes) == name) {
            Member member{read_number<std::uint16_t>(file, at + 10),
                          read_number<std::uint32_t>(file, at + 20),
                          read_number<std::uint32_t>(file, at + 24),
                          read_number<std::uint32_t>(file, at + 42)};
            read_zip64(file.subspan(at + 46 + name_bytes, extra_bytes), member);
            return member;
        }
        at = next;
    }
    return std::nullopt;
}

}  // namespace

Result<ArrayView> parse_npy(std::span<const std::byte> file) {
    const std::string_view text = chars_of(file);
    if (!text.starts_with(kNpyMagic) || text.size() < 12) return data_loss("no .npy array");
    const auto version = static_cast<unsigned>(file[6]);
    if (version < 1 || version > 3) return data_loss("a .npy of an unknown version");
    const std::size_t begin = version == 1 ? 10 : 12;
    const std::size_t bytes =
        version == 1 ? read_number<std::uint16_t>(file, 8) : read_number<std::uint32_t>(file, 8);
    if (bytes > text.size() - begin) return data_loss("a .npy whose header is cut off");
    const std::string_view header = text.substr(begin, bytes);
    const auto descr = value_of(header, "descr");
    const auto fortran = value_of(header, "fortran_order");
    const auto shape_value = value_of(header, "shape");
    if (!descr || !fortran || !shape_value) return data_loss("a .npy whose header is damaged");
    const std::optional<Dtype> dtype = dtype_of(*descr);
    auto shape = shape_of(*shape_value);
    if (!shape) return data_loss("a .npy whose shape is damaged");
    if (!dtype)
        return Error{Code::kNotImplemented, "a .npy of the type " +
                                                std::string(descr->substr(0, descr->find(','))) +
                                                ", which cannot be given out"};
    if (fortran->starts_with("True") && shape->size() > 1)
        return Error{Code::kNotImplemented, "a .npy in Fortran order"};
    if (shape->empty()) shape->push_back(1);
    std::uint64_t size = dtype_bytes(*dtype);
    for (const std::int64_t dimension : *shape) {
        if (dimension > (std::int64_t{1} << 32) || size > (std::uint64_t{1} << 32))
            return data_loss("a .npy of impossible size");
        size *= static_cast<std::uint64_t>(dimension);
    }
    const std::span<const std::byte> data = file.subspan(begin + bytes);
    if (data.size() != size)
        return data_loss("a .npy whose shape takes " + std::to_string(size) + " bytes, but " +
                         std::to_string(data.size()) + " follow");
    return ArrayView{*dtype, *std::move(shape), data};
}

Result<std::string> npz_member(std::span<const std::byte> file, std::string_view name) {
    const std::optional<Member> member = find_member(file, std::string(name) + ".npy");
    if (!member) return data_loss("a .npz without '" + std::string(name) + "'");
    const std::uint64_t at = member->local_at;
    if (at > file.size() || file.size() - at < 30) return data_loss("a .npz that is cut off");
    const std::size_t begin = static_cast<std::size_t>(at) + 30 +
                              read_number<std::uint16_t>(file, static_cast<std::size_t>(at) + 26) +
                              read_number<std::uint16_t>(file, static_cast<std::size_t>(at) + 28);
    if (begin > file.size() || member->packed > file.size() - begin)
        return data_loss("a .npz that is cut off");
    const std::span<const std::byte> packed =
        file.subspan(begin, static_cast<std::size_t>(member->packed));
    if (member->method == 0) return std::string(chars_of(packed));
    if (member->method != 8) return data_loss("a .npz of an unknown compression");
    return inflate_member(packed, static_cast<std::size_t>(member->size));
}

}  // namespace tune::loader
