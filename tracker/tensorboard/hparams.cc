// Field numbers: tensorboard/plugins/hparams/{plugin_data,api}.proto and
// google/protobuf/struct.proto of TensorBoard 2.21. Lists and structs within a value are not
// entered, however deep they nest.

#include "tracker/tensorboard/hparams.h"

#include <charconv>
#include <cmath>

#include "base/text/number_text.h"
#include "tracker/tensorboard/wire.h"

namespace tune::tensorboard {
namespace {

using Kind = Field::Kind;

Error no_session() {
    return {Code::kDataLoss, "an event of the plugin hparams is damaged"};
}

/// google.protobuf.Value as text; nothing for a null, a list or a struct.
Result<std::optional<std::string>> value_text(std::string_view bytes) {
    std::optional<std::string> text;
    FieldReader reader(bytes);
    for (Field field; reader.next(field);) {
        if (field.is(2, Kind::kFixed64)) text = shortest_text(field.as_double());
        if (field.is(3, Kind::kBytes)) text = std::string(field.content);
        if (field.is(4, Kind::kInteger)) text = field.bits != 0 ? "True" : "False";
    }
    if (!reader.is_good()) return no_session();
    return text;
}

Result<void> parse_start(std::string_view bytes, Session& session) {
    FieldReader reader(bytes);
    for (Field field; reader.next(field);) {
        if (!field.is(1, Kind::kBytes)) continue;
        std::string name;
        std::string_view value;
        FieldReader entry(field.content);
        for (Field part; entry.next(part);) {
            if (part.is(1, Kind::kBytes)) name = part.content;
            if (part.is(2, Kind::kBytes)) value = part.content;
        }
        if (!entry.is_good()) return no_session();
        TUNE_TRY(text, value_text(value));
        if (text) session.params.emplace_back(std::move(name), *std::move(text));
    }
    if (!reader.is_good()) return no_session();
    return {};
}

Result<void> parse_end(std::string_view bytes, Session& session) {
    session.status = SessionStatus::kUnknown;
    FieldReader reader(bytes);
    for (Field field; reader.next(field);) {
        if (field.is(1, Kind::kInteger) && field.bits <= 3)
            session.status = static_cast<SessionStatus>(field.bits);
        if (field.is(2, Kind::kFixed64)) session.end_time_s = field.as_double();
    }
    if (!reader.is_good()) return no_session();
    return {};
}

}  // namespace

Result<Session> parse_session(std::string_view content) {
    Session session;
    FieldReader reader(content);
    for (Field field; reader.next(field);) {
        if (field.is(3, Kind::kBytes)) TUNE_TRY_VOID(parse_start(field.content, session));
        if (field.is(4, Kind::kBytes)) TUNE_TRY_VOID(parse_end(field.content, session));
    }
    if (!reader.is_good()) return no_session();
    return session;
}

std::string session_start(const std::vector<std::pair<std::string, std::string>>& params,
                          double time_s) {
    Message start;
    for (const auto& [name, text] : params) {
        double number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        Message value;
        const bool is_number = error == std::errc() && end == text.data() + text.size();
        if (is_number && std::isfinite(number) && shortest_text(number) == text)
            value.real(2, number);
        else
            value.bytes(3, text);
        start.bytes(1, Message().bytes(1, name).bytes(2, value.text()).text());
    }
    start.real(5, time_s);
    return Message().bytes(3, start.text()).text();
}

std::string session_end(SessionStatus status, double time_s) {
    Message end;
    end.integer(1, static_cast<std::int64_t>(status)).real(2, time_s);
    return Message().bytes(4, end.text()).text();
}

}  // namespace tune::tensorboard
