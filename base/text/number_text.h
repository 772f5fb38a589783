#pragma once
// Numbers as text that reads back as the same number, and from text.

#include <optional>
#include <string>
#include <string_view>

namespace tune {

/// Python's str(float): the shortest digits, always with a point or an exponent: "1.0", "0.1",
/// "1e-07", "1e+16", "nan", "-inf". What MLflow and the studies' files hold.
[[nodiscard]] std::string number_text(double value);

/// The shortest text in C's notation, "1" for 1.0 and "1e-05"; "inf" and "nan" for what is not
/// finite.
[[nodiscard]] std::string shortest_text(double value);
/// Appends it.
void append_shortest(std::string& out, double value);

/// The number that the whole text is, in std::from_chars' grammar: no blanks and no '+'. Nothing
/// for other text, for "" and beyond the type's range. `Number`: int, long, unsigned long,
/// unsigned, double.
template <class Number>
[[nodiscard]] std::optional<Number> number_from_text(std::string_view text);

}  // namespace tune
