#pragma once
// JSON text written straight into a string: large answers (a page of 1,000 runs) would cost several
// times more through a tree of values.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tune::tracker {

/// Writes commas and colons by itself. The caller keeps the order legal: in an object, a key before
/// each value. Strings may hold any bytes; what is not UTF-8 becomes U+FFFD.
class JsonWriter {
public:
    JsonWriter& begin_object();
    JsonWriter& end_object();
    JsonWriter& begin_array();
    JsonWriter& end_array();
    JsonWriter& key(std::string_view name);
    JsonWriter& text(std::string_view value);
    JsonWriter& integer(std::int64_t value);
    /// A finite number with a point or an exponent, or the string "NaN", "Infinity", "-Infinity".
    JsonWriter& real(double value);
    JsonWriter& boolean(bool value);

    JsonWriter& field(std::string_view name, std::string_view value) {
        return key(name).text(value);
    }
    JsonWriter& field(std::string_view name, std::int64_t value) {
        return key(name).integer(value);
    }

    /// JSON that is written already, punctuation and all, where speed asks for it: neither commas
    /// nor quotes are added, now or before the value that follows.
    JsonWriter& raw(std::string_view json);

    /// Ends a line of JSON lines: the next value begins anew.
    JsonWriter& end_line();

    [[nodiscard]] std::size_t size() const { return out_.size(); }
    /// The text so far; the writer is empty afterwards.
    [[nodiscard]] std::string take() { return std::move(out_); }

private:
    void separate();
    void quote(std::string_view text);

    std::string out_;
    bool needs_comma_ = false;
};

}  // namespace tune::tracker
