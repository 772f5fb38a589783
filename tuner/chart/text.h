#pragma once
// Names come from users and from the network; a chart shows them and nothing more.

#include <cstddef>
#include <string>
#include <string_view>

namespace tune::chart {

/// Valid UTF-8 without control characters (C0, C1, bidirectional marks, line separators): each
/// becomes U+FFFD. Never longer than 3 times the input.
[[nodiscard]] std::string clean(std::string_view text);

/// Cells of a terminal: wide East Asian characters and emoji count twice. REQUIRES: clean text.
[[nodiscard]] std::size_t cells_of(std::string_view text);

/// Those of the character that begins at this byte; 0 within a character.
[[nodiscard]] std::size_t cells_at(std::string_view text, std::size_t at);

/// Width of a sans-serif font of 1 unit, estimated; real fonts are within a fifth of it.
[[nodiscard]] double ems_of(std::string_view text);

/// At most `cells`; what is cut is marked by "…". REQUIRES: clean text.
[[nodiscard]] std::string clip_cells(std::string_view text, std::size_t cells);
/// The same by ems_of.
[[nodiscard]] std::string clip_ems(std::string_view text, double ems);
/// The same, cut in the middle: long names often differ at their end.
[[nodiscard]] std::string clip_middle_ems(std::string_view text, double ems);

}  // namespace tune::chart
