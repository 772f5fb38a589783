#pragma once
// Numbers as text that reads back as the same number.

#include <string>

namespace tune {

/// Python's str(float): the shortest digits, always with a point or an exponent: "1.0", "0.1",
/// "1e-07", "1e+16", "nan", "-inf". What MLflow and the studies' files hold.
[[nodiscard]] std::string number_text(double value);

/// The shortest text in C's notation, "1" for 1.0 and "1e-05"; "inf" and "nan" for what is not
/// finite.
[[nodiscard]] std::string shortest_text(double value);
/// Appends it.
void append_shortest(std::string& out, double value);

}  // namespace tune
