#pragma once
// The fields of an MLflow request, from its JSON body or its query, read as protobuf's JSON reads
// them: a number may be a string of digits, null means absent, names may be snake_case or
// camelCase. Errors carry MLflow 3.17.2's texts.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/result.h"
#include "tracker/api/http/http_types.h"
#include "tracker/store/types.h"

namespace tune::tracker {

/// How MLflow ends a sentence about a parameter.
inline constexpr const char* kSeeDocs =
    " See the API docs for more information about request parameters.";

/// A value of a protobuf enum: what JSON calls it, and its number.
struct EnumName {
    std::string_view name;
    int number = 0;
};

/// One message. All errors are kInvalidParameterValue: "Missing value for required parameter
/// 'x'. See the API docs ...", "Invalid value 5 for parameter 'x' supplied: ...", or "Request
/// specifies both 'max_results' and 'maxResults'; provide only one of them.".
class Message {
public:
    /// The query of a GET that has one, else the JSON body: POST and PUT need Content-Type
    /// application/json; an empty body is {}; JSON in a JSON string is read too (old clients).
    [[nodiscard]] static Result<Message> read(const Request& request);

    explicit Message(Json object, std::string path = {})
        : object_(std::move(object)), path_(std::move(path)) {}
    /// A query: names in snake_case only; of a repeated name that is no list the first counts.
    static Message of_query(Json object);

    /// All of it, for who lists its names or reads a value that is none of these.
    [[nodiscard]] const Json& object() const { return object_; }
    [[nodiscard]] Result<bool> has(std::string_view name) const;

    /// "" when absent.
    [[nodiscard]] Result<std::string> text(std::string_view name) const;
    /// Neither absent nor empty.
    [[nodiscard]] Result<std::string> required_text(std::string_view name) const;
    [[nodiscard]] Result<std::optional<std::string>> optional_text(std::string_view name) const;
    [[nodiscard]] Result<std::optional<std::int64_t>> integer(std::string_view name) const;
    /// A larger one is an invalid value.
    [[nodiscard]] Result<std::optional<std::int64_t>> integer_at_most(std::string_view name,
                                                                      std::int64_t limit) const;
    [[nodiscard]] Result<std::int64_t> required_integer(std::string_view name) const;
    /// Also "NaN", "Infinity", "-Infinity".
    [[nodiscard]] Result<double> required_number(std::string_view name) const;
    [[nodiscard]] Result<std::optional<bool>> boolean(std::string_view name) const;
    [[nodiscard]] Result<std::vector<std::string>> texts(std::string_view name) const;
    /// The objects of a list; their errors name "list[0].field".
    [[nodiscard]] Result<std::vector<Message>> messages(std::string_view name) const;
    /// A nested object; empty when absent.
    [[nodiscard]] Result<Message> message(std::string_view name) const;

    /// run_id, or its old name run_uuid.
    [[nodiscard]] Result<std::string> run_id() const;
    [[nodiscard]] Result<ExperimentId> experiment_id() const;
    [[nodiscard]] Result<std::vector<ExperimentId>> experiment_ids() const;
    [[nodiscard]] Result<std::vector<Tag>> tags(std::string_view name) const;
    [[nodiscard]] Result<std::vector<Param>> params(std::string_view name) const;
    [[nodiscard]] Result<Metric> metric() const;
    /// A protobuf enum by name or number; the number of one that is known.
    [[nodiscard]] Result<std::optional<int>> enumerator(std::string_view name,
                                                        std::span<const EnumName> known) const;
    [[nodiscard]] Result<std::optional<ViewType>> view_type(std::string_view name) const;
    [[nodiscard]] Result<std::optional<RunStatus>> run_status(std::string_view name) const;
    [[nodiscard]] Result<std::optional<LoggedModelStatus>> model_status(
        std::string_view name) const;

private:
    [[nodiscard]] Result<const Json*> find(std::string_view name) const;
    [[nodiscard]] Result<const Json*> find_one(std::string_view name) const;
    [[nodiscard]] Error missing(std::string_view name) const;
    [[nodiscard]] Error invalid(std::string_view name, const Json& value) const;

    Json object_;
    std::string path_;
    bool is_query_ = false;
};

}  // namespace tune::tracker
