#pragma once
// The runs of an experiment as columns: what the page sorts, filters, groups and draws without
// asking again. 100,000 runs with 20 columns are written in about 0.3 s.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tracker/store/types.h"

namespace tune::tracker {

/// Tag values are cut after this many bytes (at a character's start); long ones are source texts
/// and notes, which no table shows.
inline constexpr std::size_t kUiTagBytesMax = 500;

/// Collects runs and writes them once. Not thread-safe.
class RunColumns {
public:
    void add(const Run& run);

    [[nodiscard]] std::size_t run_count() const { return run_ids_.size(); }

    /// The fields `"count", "attributes", "params", "metrics", "tags"` of an object, without its
    /// braces. `attributes` holds the arrays run_id, name, user, status (MLflow's number),
    /// start_ms, end_ms (null: none), artifact_uri, and `deleted` (indexes of deleted runs). The
    /// other three are objects of columns: an array with one entry per run (null: none), or, when
    /// fewer than half of the runs have the key, {"rows": [indexes, ascending], "values": [...]}.
    /// Metrics are numbers or "NaN".
    [[nodiscard]] std::string to_json_fields() const;

private:
    /// One column as JSON texts, with the runs they belong to.
    struct Column {
        std::vector<std::uint32_t> rows;
        std::vector<std::string> values;
    };
    using Columns = std::map<std::string, Column, std::less<>>;

    void put(Columns& columns, std::string_view key, std::string json);
    void write_columns(std::string& out, const Columns& columns) const;

    std::vector<std::string> run_ids_;
    std::vector<std::string> names_;
    std::vector<std::string> users_;
    std::vector<std::string> statuses_;
    std::vector<std::string> starts_;
    std::vector<std::string> ends_;
    std::vector<std::string> uris_;
    std::vector<std::string> deleted_;
    Columns params_;
    Columns metrics_;
    Columns tags_;
};

/// Appends `text` as a JSON string. Invalid UTF-8 is replaced.
void append_json_string(std::string& out, std::string_view text);

/// Appends the shortest JSON number that reads back as `value`, or `if_nan`.
void append_json_number(std::string& out, double value, std::string_view if_nan);

}  // namespace tune::tracker
