#include "loader/packing/packing.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <utility>

namespace tune::loader {
namespace {

struct Sequence {
    std::int64_t room = 0;
    std::vector<PackedPiece> pieces = {};
};

/// What is to be placed whole.
std::vector<PackedPiece> whole_pieces(std::span<const std::int64_t> document_tokens,
                                      std::int64_t length) {
    std::vector<PackedPiece> pieces;
    for (std::size_t i = 0; i < document_tokens.size(); ++i)
        for (std::int64_t at = 0; at < document_tokens[i]; at += length)
            pieces.push_back({.tokens = std::min(length, document_tokens[i] - at),
                              .document = static_cast<std::int64_t>(i),
                              .offset = at});
    return pieces;
}

}  // namespace

std::vector<PackedPiece> pack_best_fit(std::span<const std::int64_t> document_tokens,
                                       std::int64_t length) {
    std::vector<PackedPiece> pieces = whole_pieces(document_tokens, length);
    std::vector<std::size_t> order(pieces.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return pieces[a].tokens > pieces[b].tokens;
    });
    std::vector<Sequence> sequences;
    std::set<std::pair<std::int64_t, std::size_t>> open;  // (room, sequence), room > 0
    for (const std::size_t at : order) {
        const PackedPiece& piece = pieces[at];
        const auto found = open.lower_bound({piece.tokens, 0});
        std::size_t chosen = sequences.size();
        if (found == open.end()) {
            sequences.push_back({.room = length});
        } else {
            chosen = found->second;
            open.erase(found);
        }
        sequences[chosen].room -= piece.tokens;
        sequences[chosen].pieces.push_back(piece);
        if (sequences[chosen].room > 0) open.insert({sequences[chosen].room, chosen});
    }
    const auto by_place = [](const PackedPiece& a, const PackedPiece& b) {
        return std::pair(a.document, a.offset) < std::pair(b.document, b.offset);
    };
    for (Sequence& sequence : sequences)
        std::sort(sequence.pieces.begin(), sequence.pieces.end(), by_place);
    std::sort(sequences.begin(), sequences.end(), [&](const Sequence& a, const Sequence& b) {
        return by_place(a.pieces.front(), b.pieces.front());
    });
    pieces.clear();
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        std::int64_t begin = 0;
        for (PackedPiece piece : sequences[i].pieces) {
            piece.sequence = static_cast<std::int64_t>(i);
            piece.begin = std::exchange(begin, begin + piece.tokens);
            pieces.push_back(piece);
        }
    }
    return pieces;
}

}  // namespace tune::loader
