// A field may be spelled in snake_case or camelCase but not both; null is absence; numbers may be
// text. These are protobuf's rules, which MLflow's clients rely on, and the errors show Python's
// names of types, because MLflow's do.

#include "tracker/api/http/message.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace tune::tracker {
namespace {

std::string camel_case(std::string_view name) {
    std::string out;
    bool upper = false;
    for (const char c : name) {
        if (c == '_') {
            upper = true;
            continue;
        }
        out.push_back(upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c);
        upper = false;
    }
    return out;
}

/// The name Python has for the type; MLflow's messages show it.
std::string_view python_type(const Json& value) {
    switch (value.type()) {
        case Json::value_t::null: return "NoneType";
        case Json::value_t::boolean: return "bool";
        case Json::value_t::string: return "str";
        case Json::value_t::array: return "list";
        case Json::value_t::object: return "dict";
        case Json::value_t::number_float: return "float";
        default: return "int";
    }
}

Error two_spellings(std::string_view name) {
    return {Code::kInvalidParameterValue, "Request specifies both '" + std::string(name) +
                                              "' and '" + camel_case(name) +
                                              "'; provide only one of them."};
}

/// MLflow looks for these before it looks at any field.
Result<void> refuse_two_spellings(const Json& object) {
    for (const auto& [name, value] : object.items())
        if (name.find('_') != std::string::npos && object.contains(camel_case(name)) &&
            camel_case(name) != name)
            return two_spellings(name);
    return {};
}

bool is_true_or_false(std::string_view text, bool& value) {
    const auto equals = [&](std::string_view word) {
        if (text.size() != word.size()) return false;
        for (std::size_t i = 0; i < word.size(); ++i)
            if ((text[i] | 0x20) != word[i]) return false;
        return true;
    };
    value = equals("true");
    return value || equals("false");
}

std::optional<std::int64_t> integer_of(const Json& value) {
    if (value.is_number_unsigned()) {
        const auto number = value.get<std::uint64_t>();
        if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
            return std::nullopt;
        return static_cast<std::int64_t>(number);
    }
    if (value.is_number_integer()) return value.get<std::int64_t>();
    if (value.is_number_float()) {
        const double number = value.get<double>();
        if (std::trunc(number) != number || std::abs(number) >= 9.2e18) return std::nullopt;
        return static_cast<std::int64_t>(number);
    }
    if (!value.is_string()) return std::nullopt;
    const auto& text = value.get_ref<const std::string&>();
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size())
        return std::nullopt;
    return number;
}

std::optional<double> number_of(const Json& value) {
    if (value.is_number()) return value.get<double>();
    if (!value.is_string()) return std::nullopt;
    const auto& text = value.get_ref<const std::string&>();
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size() ||
        !std::isfinite(number))
        return std::nullopt;
    return number;
}

Json object_of_query(const Request& request) {
    Json object = Json::object();
    for (const auto& [name, value] : request.query) {
        Json& slot = object[name];
        if (slot.is_null()) {
            slot = value;
        } else {
            if (!slot.is_array()) slot = Json::array({std::move(slot)});
            slot.push_back(value);
        }
    }
    return object;
}

bool has_json_content_type(const Request& request) {
    std::string_view type = request.header("Content-Type");
    type = type.substr(0, type.find(';'));
    while (type.ends_with(' ')) type.remove_suffix(1);
    return type == "application/json";
}

}  // namespace

Result<Message> Message::read(const Request& request) {
    if ((request.method == Method::kGet || request.method == Method::kHead) &&
        !request.query.empty())
        return of_query(object_of_query(request));
    const bool needs_type = request.method == Method::kPost || request.method == Method::kPut;
    if (needs_type && request.header("Content-Type").empty())
        return Error{Code::kInvalidParameterValue, "Bad Request. Content-Type header is missing."};
    if (needs_type && !has_json_content_type(request))
        return Error{Code::kInvalidParameterValue,
                     "Bad Request. Content-Type must be one of ['application/json']."};
    if (request.body.empty()) return Message(Json::object());
    TUNE_TRY(body, parse_json(request.body));
    if (body.is_string()) {
        TUNE_TRY(inner, parse_json(body.get_ref<const std::string&>()));
        body = std::move(inner);
    }
    if (body.is_null()) body = Json::object();
    if (!body.is_object())
        return Error{Code::kInvalidParameterValue, "The request body must be a JSON object."};
    TUNE_TRY_VOID(refuse_two_spellings(body));
    return Message(std::move(body));
}

Message Message::of_query(Json object) {
    Message message(std::move(object));
    message.is_query_ = true;
    return message;
}

Error Message::missing(std::string_view name) const {
    return {Code::kInvalidParameterValue,
            "Missing value for required parameter '" + path_ + std::string(name) + "'." + kSeeDocs};
}

Error Message::invalid(std::string_view name, const Json& value) const {
    // As Python's json.dumps writes it: other characters escaped.
    std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
    constexpr std::size_t kShown = 200;
    if (text.size() > kShown) text = text.substr(0, kShown) + "...";
    return {Code::kInvalidParameterValue, "Invalid value " + text + " for parameter '" + path_ +
                                              std::string(name) +
                                              "' supplied:  Hint: Value was of type '" +
                                              std::string(python_type(value)) + "'." + kSeeDocs};
}

/// The value, or nullptr when it is absent or null.
Result<const Json*> Message::find(std::string_view name) const {
    const auto by_name = object_.find(std::string(name));
    const bool has_underscore = !is_query_ && name.find('_') != std::string_view::npos;
    const auto by_camel = has_underscore ? object_.find(camel_case(name)) : object_.end();
    if (by_name != object_.end() && by_camel != object_.end()) return two_spellings(name);
    const auto found = by_name != object_.end() ? by_name : by_camel;
    if (found == object_.end() || found->is_null()) return static_cast<const Json*>(nullptr);
    return &*found;
}

/// A field that is no list.
Result<const Json*> Message::find_one(std::string_view name) const {
    TUNE_TRY(value, find(name));
    if (is_query_ && value != nullptr && value->is_array()) return &value->front();
    return value;
}

Result<bool> Message::has(std::string_view name) const {
    TUNE_TRY(value, find(name));
    return value != nullptr;
}

Result<std::optional<std::string>> Message::optional_text(std::string_view name) const {
    TUNE_TRY(value, find_one(name));
    if (!value) return std::optional<std::string>();
    if (!value->is_string()) return invalid(name, *value);
    return std::optional<std::string>(value->get<std::string>());
}

Result<std::string> Message::text(std::string_view name) const {
    TUNE_TRY(value, optional_text(name));
    return std::move(value).value_or("");
}

Result<std::string> Message::required_text(std::string_view name) const {
    TUNE_TRY(value, text(name));
    if (value.empty()) return missing(name);
    return value;
}

Result<std::optional<std::int64_t>> Message::integer(std::string_view name) const {
    TUNE_TRY(value, find_one(name));
    if (!value) return std::optional<std::int64_t>();
    const std::optional<std::int64_t> number = integer_of(*value);
    if (!number) return invalid(name, *value);
    return number;
}

Result<std::optional<std::int64_t>> Message::integer_at_most(std::string_view name,
                                                             std::int64_t limit) const {
    TUNE_TRY(number, integer(name));
    if (!number || *number <= limit) return number;
    TUNE_TRY(value, find(name));
    return invalid(name, *value);
}

Result<std::int64_t> Message::required_integer(std::string_view name) const {
    TUNE_TRY(value, integer(name));
    if (!value) return missing(name);
    return *value;
}

Result<double> Message::required_number(std::string_view name) const {
    TUNE_TRY(value, find_one(name));
    if (!value) return missing(name);
    if (value->is_string() && value->get_ref<const std::string&>().empty()) return missing(name);
    const std::optional<double> number = number_of(*value);
    if (!number) return invalid(name, *value);
    return *number;
}

Result<std::optional<bool>> Message::boolean(std::string_view name) const {
    TUNE_TRY(value, find_one(name));
    if (!value) return std::optional<bool>();
    if (value->is_boolean()) return std::optional<bool>(value->get<bool>());
    // Only a query has texts for booleans.
    if (!is_query_ || !value->is_string()) return invalid(name, *value);
    bool flag = false;
    if (is_true_or_false(value->get_ref<const std::string&>(), flag))
        return std::optional<bool>(flag);
    return Error{
        Code::kInvalidParameterValue,
        "Invalid boolean value: " + value->get<std::string>() + ", must be 'true' or 'false'."};
}

Result<std::vector<std::string>> Message::texts(std::string_view name) const {
    TUNE_TRY(value, find(name));
    std::vector<std::string> out;
    if (!value) return out;
    // One value of a query is not a list yet.
    const Json list = is_query_ && value->is_string() ? Json::array({*value}) : *value;
    if (!list.is_array()) return invalid(name, *value);
    for (const Json& item : list) {
        if (!item.is_string()) return invalid(name, *value);
        out.push_back(item.get<std::string>());
    }
    return out;
}

Result<std::vector<Message>> Message::messages(std::string_view name) const {
    TUNE_TRY(value, find(name));
    std::vector<Message> out;
    if (!value) return out;
    if (!value->is_array()) return invalid(name, *value);
    for (const Json& item : *value) {
        if (!item.is_object()) return invalid(name, *value);
        out.emplace_back(item, path_ + std::string(name) + "[" + std::to_string(out.size()) + "].");
    }
    return out;
}

Result<Message> Message::message(std::string_view name) const {
    TUNE_TRY(value, find(name));
    std::string path = path_ + std::string(name) + ".";
    if (!value) return Message(Json::object(), std::move(path));
    if (!value->is_object()) return invalid(name, *value);
    return Message(*value, std::move(path));
}

Result<std::string> Message::run_id() const {
    TUNE_TRY(id, optional_text("run_id"));
    TUNE_TRY(old_name, text("run_uuid"));
    // Given but empty is missing, whatever the old name says: as in MLflow.
    if (!id) id = std::move(old_name);
    if (id->empty()) return missing("run_id");
    return std::move(*id);
}

Result<ExperimentId> Message::experiment_id() const {
    TUNE_TRY(id, required_text("experiment_id"));
    return parse_experiment_id(id);
}

Result<std::vector<ExperimentId>> Message::experiment_ids() const {
    TUNE_TRY(names, texts("experiment_ids"));
    std::vector<ExperimentId> ids;
    for (const std::string& name : names) {
        TUNE_TRY(id, parse_experiment_id(name));
        ids.push_back(id);
    }
    return ids;
}

Result<std::vector<Tag>> Message::tags(std::string_view name) const {
    TUNE_TRY(items, messages(name));
    std::vector<Tag> tags;
    for (const Message& item : items) {
        TUNE_TRY(key, item.required_text("key"));
        TUNE_TRY(value, item.text("value"));
        tags.push_back({std::move(key), std::move(value)});
    }
    return tags;
}

Result<std::vector<Param>> Message::params(std::string_view name) const {
    TUNE_TRY(pairs, tags(name));
    std::vector<Param> params;
    for (Tag& pair : pairs) params.push_back({std::move(pair.key), std::move(pair.value)});
    return params;
}

Result<Metric> Message::metric() const {
    Metric metric;
    TUNE_TRY(key, required_text("key"));
    TUNE_TRY(value, required_number("value"));
    TUNE_TRY(timestamp, required_integer("timestamp"));
    TUNE_TRY(step, integer("step"));
    TUNE_TRY(model_id, text("model_id"));
    TUNE_TRY(dataset_name, text("dataset_name"));
    TUNE_TRY(dataset_digest, text("dataset_digest"));
    metric.key = std::move(key);
    metric.value = value;
    metric.timestamp_ms = timestamp;
    metric.step = step.value_or(0);
    metric.model_id = std::move(model_id);
    metric.dataset_name = std::move(dataset_name);
    metric.dataset_digest = std::move(dataset_digest);
    return metric;
}

Result<std::optional<int>> Message::enumerator(std::string_view name,
                                               std::span<const EnumName> known) const {
    TUNE_TRY(value, find(name));
    if (!value) return std::optional<int>();
    const std::optional<std::int64_t> number = integer_of(*value);
    for (const EnumName& one : known)
        if ((number && *number == one.number) || (value->is_string() && *value == one.name))
            return std::optional<int>(one.number);
    return invalid(name, *value);
}

Result<std::optional<ViewType>> Message::view_type(std::string_view name) const {
    TUNE_TRY(value, find_one(name));
    if (!value) return std::optional<ViewType>();
    if (const auto number = integer_of(*value); number && *number >= 1 && *number <= 3)
        return std::optional<ViewType>(static_cast<ViewType>(*number));
    if (*value == "ACTIVE_ONLY") return std::optional<ViewType>(ViewType::kActiveOnly);
    if (*value == "DELETED_ONLY") return std::optional<ViewType>(ViewType::kDeletedOnly);
    if (*value == "ALL") return std::optional<ViewType>(ViewType::kAll);
    return invalid(name, *value);
}

Result<std::optional<RunStatus>> Message::run_status(std::string_view name) const {
    TUNE_TRY(value, find_one(name));
    if (!value) return std::optional<RunStatus>();
    if (const auto number = integer_of(*value); number && *number >= 1 && *number <= 5)
        return std::optional<RunStatus>(static_cast<RunStatus>(*number));
    if (value->is_string())
        if (const auto status = status_from_name(value->get_ref<const std::string&>()))
            return status;
    return invalid(name, *value);
}

Result<std::optional<LoggedModelStatus>> Message::model_status(std::string_view name) const {
    TUNE_TRY(value, find_one(name));
    if (!value) return std::optional<LoggedModelStatus>();
    if (const auto number = integer_of(*value); number && *number >= 0 && *number <= 3)
        return std::optional<LoggedModelStatus>(static_cast<LoggedModelStatus>(*number));
    if (value->is_string())
        if (const auto status = logged_model_status_from_name(value->get_ref<const std::string&>()))
            return status;
    return invalid(name, *value);
}

}  // namespace tune::tracker
