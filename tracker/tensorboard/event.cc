// Events of TensorBoard, from and to bytes. Field numbers are those of
// tensorboard/compat/proto/{event,summary,tensor}.proto of TensorBoard 2.21.
//
// Scalars come in three forms: simple_value (old writers), a tensor with a list of one number, or a
// tensor whose bytes are the number. All types of numbers are read; a tensor of several numbers, an
// image or a histogram is no scalar and is passed over. What is written is simple_value, a float32
// that every reader knows, and beside it the exact double in a field that only we know: protobuf
// readers skip unknown fields, so TensorBoard shows the scalar and our own import loses no bit.

#include "tracker/tensorboard/event.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "tracker/tensorboard/wire.h"

namespace tune::tensorboard {
namespace {

using Kind = Field::Kind;

constexpr std::int64_t kDtFloat = 1;
constexpr std::int64_t kDtDouble = 2;
constexpr std::int64_t kDtHalf = 19;
constexpr std::int64_t kDtBfloat16 = 14;
/// Of a value: ours, which every other reader passes over.
constexpr std::uint32_t kExactValue = 77'001;
constexpr std::int64_t kSessionStart = 1;

/// The field numbers of a tensor's lists of numbers, and of its bytes.
enum : std::uint32_t {
    kTensorContent = 4,
    kFloats = 5,
    kDoubles = 6,
    kInts = 7,
    kInt64s = 10,
    kHalves = 13,
    kUint32s = 16,
    kUint64s = 17,
};

double from_half(std::uint16_t bits) {
    const int exponent = (bits >> 10) & 31;
    const double fraction = bits & 1023;
    const double size = exponent == 31  ? (fraction == 0 ? HUGE_VAL : std::nan(""))
                        : exponent == 0 ? std::ldexp(fraction, -24)
                                        : std::ldexp(fraction + 1024, exponent - 25);
    return (bits & 0x8000) != 0 ? -size : size;
}

template <class T>
std::optional<double> from_bytes(std::string_view bytes) {
    T value;
    if (bytes.size() != sizeof value) return {};
    std::memcpy(&value, bytes.data(), sizeof value);
    return static_cast<double>(value);
}

std::optional<double> from_content(std::int64_t dtype, std::string_view bytes) {
    switch (dtype) {
        case kDtFloat: return from_bytes<float>(bytes);
        case kDtDouble: return from_bytes<double>(bytes);
        case 3: return from_bytes<std::int32_t>(bytes);
        case 4: return from_bytes<std::uint8_t>(bytes);
        case 5: return from_bytes<std::int16_t>(bytes);
        case 6: return from_bytes<std::int8_t>(bytes);
        case 9: return from_bytes<std::int64_t>(bytes);
        case 17: return from_bytes<std::uint16_t>(bytes);
        case 22: return from_bytes<std::uint32_t>(bytes);
        case 23: return from_bytes<std::uint64_t>(bytes);
        case kDtHalf:
            if (const auto bits = from_bytes<std::uint16_t>(bytes))
                return from_half(static_cast<std::uint16_t>(*bits));
            return {};
        case kDtBfloat16:
            if (const auto bits = from_bytes<std::uint16_t>(bytes))
                return std::bit_cast<float>(static_cast<std::uint32_t>(*bits) << 16);
            return {};
        default: return {};
    }
}

double from_integer(std::int64_t dtype, std::uint32_t field, std::uint64_t bits) {
    if (field == kHalves)
        return dtype == kDtBfloat16 ? std::bit_cast<float>(static_cast<std::uint32_t>(bits << 16))
                                    : from_half(static_cast<std::uint16_t>(bits));
    if (field == kUint32s || field == kUint64s) return static_cast<double>(bits);
    return static_cast<double>(static_cast<std::int64_t>(bits));
}

/// The one number that a packed list or a single entry holds.
std::optional<double> from_list(std::int64_t dtype, const Field& field) {
    if (field.number == kFloats)
        return field.kind == Kind::kFixed32 ? std::optional<double>(field.as_float())
                                            : from_bytes<float>(field.content);
    if (field.number == kDoubles)
        return field.kind == Kind::kFixed64 ? std::optional<double>(field.as_double())
                                            : from_bytes<double>(field.content);
    std::uint64_t bits = field.bits;
    std::string_view packed = field.content;
    if (field.kind == Kind::kBytes && (!take_varint(packed, bits) || !packed.empty())) return {};
    return from_integer(dtype, field.number, bits);
}

bool is_list(std::uint32_t field) {
    return field == kFloats || field == kDoubles || field == kInts || field == kInt64s ||
           field == kHalves || field == kUint32s || field == kUint64s;
}

/// The number of a tensor that holds one; false where the bytes are no tensor.
bool parse_tensor(std::string_view bytes, std::optional<double>& number) {
    std::int64_t dtype = 0;
    std::optional<Field> content;
    bool is_one = true;
    FieldReader reader(bytes);
    for (Field field; reader.next(field);) {
        if (field.is(1, Kind::kInteger)) dtype = static_cast<std::int64_t>(field.bits);
        const bool is_data = is_list(field.number) ||
                             (field.is(kTensorContent, Kind::kBytes) && !field.content.empty());
        if (!is_data) continue;
        is_one = is_one && !content;
        content = field;
    }
    if (!reader.is_good()) return false;
    number.reset();
    if (content && is_one)
        number = content->number == kTensorContent ? from_content(dtype, content->content)
                                                   : from_list(dtype, *content);
    return true;
}

bool parse_metadata(std::string_view bytes, Value& value) {
    FieldReader reader(bytes);
    for (Field field; reader.next(field);) {
        if (!field.is(1, Kind::kBytes)) continue;
        FieldReader plugin(field.content);
        for (Field part; plugin.next(part);) {
            if (part.is(1, Kind::kBytes)) value.plugin = part.content;
            if (part.is(2, Kind::kBytes)) value.plugin_content = part.content;
        }
        if (!plugin.is_good()) return false;
    }
    return reader.is_good();
}

bool parse_value(std::string_view bytes, Value& value) {
    std::optional<double> exact;
    FieldReader reader(bytes);
    for (Field field; reader.next(field);) {
        if (field.is(1, Kind::kBytes)) value.tag = field.content;
        if (field.is(2, Kind::kFixed32)) {
            value.number = field.as_float();
            value.is_simple = true;
        }
        if (field.is(kExactValue, Kind::kFixed64)) exact = field.as_double();
        if (field.is(4, Kind::kBytes)) value.kind = "images";
        if (field.is(5, Kind::kBytes)) value.kind = "histograms";
        if (field.is(6, Kind::kBytes)) value.kind = "audio";
        if (field.is(8, Kind::kBytes) && !parse_tensor(field.content, value.number)) return false;
        if (field.is(9, Kind::kBytes) && !parse_metadata(field.content, value)) return false;
    }
    if (exact && value.is_simple) value.number = exact;
    return reader.is_good();
}

bool parse_session_log(std::string_view bytes, Event& event) {
    FieldReader reader(bytes);
    for (Field field; reader.next(field);)
        if (field.is(1, Kind::kInteger)) event.starts_session = field.bits == kSessionStart;
    return reader.is_good();
}

bool parse_summary(std::string_view bytes, Event& event) {
    FieldReader reader(bytes);
    for (Field field; reader.next(field);) {
        if (!field.is(1, Kind::kBytes)) continue;
        Value value;
        if (event.values.size() >= kEventValuesMax || !parse_value(field.content, value))
            return false;
        event.values.push_back(value);
    }
    return reader.is_good();
}

Message event_at(double wall_time_s, std::int64_t step) {
    Message event;
    event.real(1, wall_time_s);
    if (step != 0) event.integer(2, step);
    return event;
}

std::string metadata(std::string_view plugin, std::string_view content) {
    Message data;
    data.bytes(1, plugin);
    if (!content.empty()) data.bytes(2, content);
    Message message;
    message.bytes(1, data.text());
    return message.text();
}

}  // namespace

Result<Event> parse_event(std::string_view bytes) {
    const Error wrong{Code::kDataLoss, "a record is not an event of TensorBoard"};
    Event event;
    FieldReader reader(bytes);
    for (Field field; reader.next(field);) {
        if (field.is(1, Kind::kFixed64)) event.wall_time_s = field.as_double();
        if (field.is(2, Kind::kInteger)) event.step = static_cast<std::int64_t>(field.bits);
        if (field.is(3, Kind::kBytes)) event.file_version = field.content;
        if (field.is(5, Kind::kBytes) && !parse_summary(field.content, event)) return wrong;
        if (field.is(7, Kind::kBytes) && !parse_session_log(field.content, event)) return wrong;
    }
    if (!reader.is_good()) return wrong;
    return event;
}

std::string version_event(double wall_time_s) {
    return event_at(wall_time_s, 0).bytes(3, "brain.Event:2").text();
}

std::string start_event(double wall_time_s, std::int64_t step) {
    Message session;
    session.integer(1, kSessionStart);
    return event_at(wall_time_s, step).bytes(7, session.text()).text();
}

std::string scalar_event(double wall_time_s, std::int64_t step, std::span<const Scalar> scalars) {
    Message summary;
    for (const Scalar& scalar : scalars) {
        Message value;
        value.bytes(1, scalar.tag).real32(2, static_cast<float>(scalar.value));
        value.real(kExactValue, scalar.value);
        summary.bytes(1, value.text());
    }
    return event_at(wall_time_s, step).bytes(5, summary.text()).text();
}

std::string plugin_event(double wall_time_s, std::string_view tag, std::string_view plugin,
                         std::string_view content) {
    Message value;
    value.bytes(1, tag);
    // The plugin wants a value: an empty list of numbers, as hparams' own writer gives.
    value.bytes(8, Message().integer(1, kDtFloat).bytes(2, Message().bytes(2, "").text()).text());
    value.bytes(9, metadata(plugin, content));
    return event_at(wall_time_s, 0).bytes(5, Message().bytes(1, value.text()).text()).text();
}

}  // namespace tune::tensorboard
