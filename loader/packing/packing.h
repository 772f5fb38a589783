#pragma once
// How documents of varying length share sequences of one length. Pure: no I/O.

#include <cstdint>
#include <span>
#include <vector>

namespace tune::loader {

/// A run of one document's tokens in one sequence.
struct PackedPiece {
    std::int64_t sequence = 0;  ///< in its batch or window
    std::int64_t begin = 0;     ///< in the sequence
    std::int64_t tokens = 0;    ///< > 0
    std::int64_t document = 0;  ///< its place in the window; in batches the sample's id
    std::int64_t offset = 0;    ///< of the first token within the document
    bool operator==(const PackedPiece&) const = default;
};

/// Sequences that hold the documents of a window, each whole. Longest first, each into the sequence
/// with the least room that takes it ("best fit decreasing", at most 11/9 of the fewest sequences;
/// Johnson 1973), else into a new one; sequences come in the order of their first document, as do
/// documents in them. Of one longer than `length` whole sequences are cut off its beginning; empty
/// ones are nowhere. Cost O(n log n) for n documents.
[[nodiscard]] std::vector<PackedPiece> pack_best_fit(std::span<const std::int64_t> document_tokens,
                                                     std::int64_t length);

}  // namespace tune::loader
