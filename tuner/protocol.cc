// The JSON of the protocol. One visit_fields() per struct lists its fields, once: name on the wire,
// member, and whether it must be there. Reading and writing walk the same list, so that neither can
// know a field that the other does not, and the order of errors is the order of the list. How a
// value looks in JSON depends on its type alone (read_value, write_value); a text that
// holds a JSON object has a kind of field of its own (JsonText).

#include "tuner/protocol.h"

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "tuner/protocol_fields.h"

namespace tune::tuner {
namespace {

template <class T>
using Names = std::pair<T, std::string_view>;

constexpr std::array<Names<Action>, 4> kActions = {{
    {Action::kPrune, "prune"},
    {Action::kStop, "stop"},
    {Action::kCheckpointStop, "checkpoint_stop"},
    {Action::kProfile, "profile"},
}};

constexpr std::array<Names<Outcome>, 8> kOutcomes = {{
    {Outcome::kDone, "done"},
    {Outcome::kPruned, "pruned"},
    {Outcome::kPreempted, "preempted"},
    {Outcome::kOom, "oom"},
    {Outcome::kBadConfig, "bad_config"},
    {Outcome::kFailed, "failed"},
    {Outcome::kLost, "lost"},
    {Outcome::kCancelled, "cancelled"},
}};

struct AnyVisit {
    template <class Any>
    void operator()(const Any&) const {}
};

/// The structs of the protocol.
template <class T>
concept HasFields = requires(const T* type, AnyVisit visit) {
    visit_fields(type, visit);
};

// What a value must be, for the error. Nothing: it was read.
using Expected = std::optional<std::string>;

Expected read_value(const Json& json, std::string& out) {
    if (!json.is_string()) return "a string";
    out = json.get<std::string>();
    return {};
}

Expected read_value(const Json& json, bool& out) {
    if (!json.is_boolean()) return "true or false";
    out = json.get<bool>();
    return {};
}

Expected read_value(const Json& json, std::int64_t& out) {
    const bool too_large = json.is_number_unsigned() &&
                           json.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
    if (!json.is_number_integer() || too_large) return "an integer";
    out = json.get<std::int64_t>();
    return {};
}

Expected read_value(const Json& json, std::uint64_t& out) {
    const bool negative =
        json.is_number_integer() && !json.is_number_unsigned() && json.get<std::int64_t>() < 0;
    if (!json.is_number_integer() || negative) return "an integer of 0 or more";
    out = json.get<std::uint64_t>();
    return {};
}

Expected read_value(const Json& json, int& out) {
    std::int64_t wide = 0;
    if (Expected expected = read_value(json, wide)) return expected;
    if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max())
        return "an integer of 32 bits";
    out = static_cast<int>(wide);
    return {};
}

/// Numbers that are not finite travel as strings (json_number).
Expected read_value(const Json& json, double& out) {
    const std::string text = json.is_string() ? json.get<std::string>() : std::string();
    if (json.is_number())
        out = json.get<double>();
    else if (text == "NaN")
        out = std::numeric_limits<double>::quiet_NaN();
    else if (text == "Infinity")
        out = std::numeric_limits<double>::infinity();
    else if (text == "-Infinity")
        out = -std::numeric_limits<double>::infinity();
    else
        return "a number, \"NaN\", \"Infinity\" or \"-Infinity\"";
    return {};
}

Expected read_value(const Json& json, Action& out) {
    if (!json.is_string()) return "a string";
    for (const auto& [action, name] : kActions) {
        if (json.get_ref<const std::string&>() != name) continue;
        out = action;
        return {};
    }
    return "prune, stop or checkpoint_stop";
}

Expected read_value(const Json& json, LogAction& out) {
    if (!json.is_string()) return "a string";
    for (const auto& [action, name] : kLogActions) {
        if (json.get_ref<const std::string&>() != name) continue;
        out = action;
        return {};
    }
    return "retry, no_retry, exclude_device or exclude_host";
}

/// An object of strings; its order is the names'.
Expected read_value(const Json& json, std::vector<EnvironmentVariable>& out) {
    constexpr const char* kExpected = "an object of strings";
    if (!json.is_object()) return kExpected;
    for (const auto& [key, value] : json.items()) {
        if (!value.is_string()) return kExpected;
        out.push_back({key, value.get<std::string>()});
    }
    return {};
}

template <class T>
Expected read_value(const Json& json, std::optional<T>& out) {
    T value{};
    if (Expected expected = read_value(json, value)) return expected;
    out = value;
    return {};
}

/// Lists of plain values.
template <class T>
Expected read_value(const Json& json, std::vector<T>& out) {
    constexpr bool kIsText = std::same_as<T, std::string>;
    if (!json.is_array()) return "a list";
    for (const Json& item : json) {
        T value{};
        if (read_value(item, value))
            return kIsText ? "a list of strings" : "a list of integers of 0 or more";
        out.push_back(std::move(value));
    }
    return {};
}

/// Reads fields of one JSON object; keeps the first error.
class FieldReader {
public:
    explicit FieldReader(const Json& object) : object_(object) {
        if (!object.is_object()) fail("the body", "a JSON object");
    }

    template <class Struct, class Value>
    void read(Struct& out, const Field<Struct, Value>& field) {
        const Json* const json = find(field.name);
        if (json != nullptr) return read_into(out.*field.member, *json, field.name);
        if (field.presence == kRequired) fail(quoted(field.name), "a string, but it is missing");
    }
    template <class Struct>
    void read(Struct& out, const JsonText<Struct>& field) {
        const Json* const json = find(field.name);
        if (json == nullptr) return;
        if (!json->is_object()) return fail(quoted(field.name), "a JSON object");
        out.*field.member = to_text(*json);
    }

    [[nodiscard]] const std::optional<Error>& error() const { return error_; }

private:
    static std::string quoted(const char* name) { return std::string("field '") + name + "'"; }

    template <class T>
    void read_into(T& out, const Json& json, const char* name) {
        if (const Expected expected = read_value(json, out)) fail(quoted(name), *expected);
    }
    /// Its error lists the names that there are.
    void read_into(Outcome& out, const Json& json, const char* name) {
        if (!json.is_string()) return fail(quoted(name), "a string");
        const Result<Outcome> known = outcome_from_name(json.get_ref<const std::string&>());
        if (known)
            out = *known;
        else
            keep(known.error());
    }
    template <HasFields T>
    void read_into(std::vector<T>& out, const Json& json, const char* name) {
        if (!json.is_array()) return fail(quoted(name), "a list");
        for (const Json& item : json) {
            T value;
            if (!read_message(value, item)) return;
            out.push_back(std::move(value));
        }
    }
    template <HasFields T>
    void read_into(std::optional<T>& out, const Json& json, const char*) {
        T value;
        if (read_message(value, json)) out = std::move(value);
    }
    template <HasFields T>
    void read_into(T& out, const Json& json, const char*) {
        read_message(out, json);
    }
    template <HasFields T>
    bool read_message(T& out, const Json& json) {
        FieldReader reader(json);
        visit_fields(&out, [&](const auto& field) { reader.read(out, field); });
        if (reader.error_) keep(*reader.error_);
        return !reader.error_;
    }

    [[nodiscard]] const Json* find(const char* name) const {
        if (!object_.is_object()) return nullptr;
        const auto found = object_.find(name);
        return found == object_.end() || found->is_null() ? nullptr : &*found;
    }
    void fail(const std::string& what, const std::string& expected) {
        keep({Code::kInvalidParameterValue, what + " must be " + expected});
    }
    void keep(const Error& error) {
        if (!error_) error_ = error;
    }

    const Json& object_;
    std::optional<Error> error_;
};

template <HasFields T>
Json write_message(const T& message);

template <class T>
Json write_value(const T& value) {
    return value;
}
Json write_value(double value) {
    return json_number(value);
}
Json write_value(Action value) {
    return action_name(value);
}
Json write_value(LogAction value) {
    return kLogActions.at(static_cast<std::size_t>(value)).second;
}
Json write_value(Outcome value) {
    return outcome_name(value);
}
Json write_value(const std::vector<EnvironmentVariable>& variables) {
    Json object = Json::object();
    for (const EnvironmentVariable& variable : variables) object[variable.name] = variable.value;
    return object;
}
template <HasFields T>
Json write_value(const T& value) {
    return write_message(value);
}
template <HasFields T>
Json write_value(const std::vector<T>& values) {
    Json list = Json::array();
    for (const T& value : values) list.push_back(write_message(value));
    return list;
}

/// Writes one field into `json`.
template <class Struct, class Value>
void write_field(Json& json, const Struct& message, const Field<Struct, Value>& field) {
    if (field.is_written == nullptr || field.is_written(message))
        json[field.name] = write_value(message.*field.member);
}
template <class Struct, class Value>
void write_field(Json& json, const Struct& message,
                 const Field<Struct, std::optional<Value>>& field) {
    if (const std::optional<Value>& value = message.*field.member)
        json[field.name] = write_value(*value);
}
template <class Struct>
void write_field(Json& json, const Struct& message, const JsonText<Struct>& field) {
    Result<Json> object = parse_json(message.*field.member);
    json[field.name] = object ? std::move(*object) : Json::object();
}

template <HasFields T>
Json write_message(const T& message) {
    Json json = Json::object();
    visit_fields(&message, [&](const auto& field) { write_field(json, message, field); });
    return json;
}

template <class T, class Table>
std::string_view name_in(const Table& table, T value, std::string_view otherwise) {
    for (const auto& [known, name] : table)
        if (known == value) return name;
    return otherwise;
}

}  // namespace

std::string_view action_name(Action action) {
    return name_in(kActions, action, "stop");
}

std::string_view outcome_name(Outcome outcome) {
    return name_in(kOutcomes, outcome, "failed");
}

Result<Outcome> outcome_from_name(std::string_view name) {
    for (const auto& [known, known_name] : kOutcomes)
        if (known_name == name) return known;
    return Error{Code::kInvalidParameterValue,
                 "unknown outcome '" + std::string(name) +
                     "'; known: done, pruned, preempted, oom, bad_config, failed, lost, cancelled"};
}

template <ProtocolBody T>
Json to_json(const T& message) {
    return write_message(message);
}

template <ProtocolBody T>
Result<T> from_json(const Json& value) {
    T message;
    FieldReader reader(value);
    visit_fields(&message, [&](const auto& field) { reader.read(message, field); });
    if (reader.error()) return *reader.error();
    return message;
}

template Json to_json(const AttemptId&);
template Json to_json(const RegisterRequest&);
template Json to_json(const RegisterReply&);
template Json to_json(const Lease&);
template Json to_json(const LeaseRequest&);
template Json to_json(const LeaseReply&);
template Json to_json(const HeartbeatRequest&);
template Json to_json(const HeartbeatReply&);
template Json to_json(const PollRequest&);
template Json to_json(const PollReply&);
template Json to_json(const ReportRequest&);
template Json to_json(const ReportReply&);
template Json to_json(const FinishRequest&);
template Json to_json(const FinishReply&);

template Result<AttemptId> from_json(const Json&);
template Result<RegisterRequest> from_json(const Json&);
template Result<RegisterReply> from_json(const Json&);
template Result<Lease> from_json(const Json&);
template Result<LeaseRequest> from_json(const Json&);
template Result<LeaseReply> from_json(const Json&);
template Result<HeartbeatRequest> from_json(const Json&);
template Result<HeartbeatReply> from_json(const Json&);
template Result<PollRequest> from_json(const Json&);
template Result<PollReply> from_json(const Json&);
template Result<ReportRequest> from_json(const Json&);
template Result<ReportReply> from_json(const Json&);
template Result<FinishRequest> from_json(const Json&);
template Result<FinishReply> from_json(const Json&);

}  // namespace tune::tuner
