// Spans cover a prefix of a series' blocks without gaps: they are added at the end only, of blocks
// behind the last span, and a change of a block drops its span and all behind it. So the summaries
// of a series are its spans followed by the blocks behind them, each block exactly once.

#include "tracker/store/metrics/metric_spans.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tune::tracker {
namespace {

/// One summary as it lies in a span.
struct Packed {
    std::int64_t block_id;
    std::int64_t first_ms;
    std::int64_t last_ms;
    std::int64_t min_step;
    std::int64_t max_step;
    std::int64_t final_ms;
    double min_value;
    double max_value;
    double final_value;
    std::int64_t row_count;
    std::int64_t nan_count;
};
static_assert(sizeof(Packed) == 88 && std::endian::native == std::endian::little);

Packed pack(const SeriesPiece& piece) {
    const BlockSummary& summary = piece.summary;
    return {piece.block_id,    piece.first_ms,    piece.last_ms,
            summary.min_step,  summary.max_step,  summary.final.timestamp_ms,
            summary.min_value, summary.max_value, summary.final.value,
            summary.row_count, summary.nan_count};
}

SeriesPiece unpack(const Packed& packed) {
    return {packed.block_id,
            packed.first_ms,
            packed.last_ms,
            {packed.row_count, packed.nan_count, packed.min_step, packed.max_step, packed.min_value,
             packed.max_value, Point{packed.final_ms, packed.max_step, packed.final_value}}};
}

double real_or_nan(const sqlite::Statement& select, int column) {
    return select.is_null(column) ? std::nan("") : select.real(column);
}

SeriesPiece read_piece(const sqlite::Statement& select) {
    SeriesPiece piece;
    piece.block_id = select.integer(0);
    piece.first_ms = select.integer(1);
    piece.last_ms = select.integer(2);
    piece.summary = {select.integer(3),
                     select.integer(4),
                     select.integer(5),
                     select.integer(6),
                     real_or_nan(select, 7),
                     real_or_nan(select, 8),
                     Point{select.integer(9), select.integer(6), real_or_nan(select, 10)}};
    return piece;
}

struct SpanEnd {
    std::int64_t number = -1;
    Point first{INT64_MIN, INT64_MIN, 0};  // of the last block covered
};

/// The end of the last span; number -1 and a point before all others when there is none.
Result<SpanEnd> last_span(sqlite::Connection& connection, const SeriesKey& key) {
    TUNE_TRY(select, connection.prepare("SELECT number, last_timestamp_ms, last_step, last_value, "
                                        "last_is_nan FROM metric_spans WHERE run_row = ? AND "
                                        "key_id = ? ORDER BY number DESC LIMIT 1"));
    TUNE_TRY(has_row, select.with(key.run_row, key.key_id).step());
    if (!has_row) return SpanEnd{};
    return SpanEnd{select.integer(0),
                   {select.integer(1), select.integer(2),
                    select.integer(4) != 0 ? std::nan("") : select.real(3)}};
}

void bind_point(sqlite::Statement& statement, const SeriesKey& key, const Point& point) {
    const bool is_nan = std::isnan(point.value);
    statement.with(key.run_row, key.key_id, point.timestamp_ms, point.step,
                   is_nan ? 0 : point.value, std::int64_t{is_nan});
}

constexpr const char* kPiecesBehind =
    "SELECT block_id, first_timestamp_ms, last_timestamp_ms, row_count, nan_count, min_step, "
    "max_step, min_value, max_value, final_timestamp_ms, final_value, first_step, first_value, "
    "first_is_nan FROM metric_blocks WHERE run_row = ?1 AND key_id = ?2 AND (first_timestamp_ms, "
    "first_step, first_value, first_is_nan) > (?3, ?4, ?5, ?6) ORDER BY first_timestamp_ms, "
    "first_step, first_value, first_is_nan LIMIT ?7";

Result<void> insert_span(sqlite::Connection& connection, const SeriesKey& key, std::int64_t number,
                         const Point& last, const std::vector<Packed>& blocks) {
    TUNE_TRY(insert, connection.prepare(
                         "INSERT INTO metric_spans (run_row, key_id, last_timestamp_ms, last_step, "
                         "last_value, last_is_nan, number, summaries) VALUES (?, ?, ?, ?, ?, ?, ?, "
                         "?)"));
    bind_point(insert, key, last);
    insert.bind(7, number);
    insert.bind_blob(8, std::as_bytes(std::span(blocks)));
    return insert.run();
}

}  // namespace

Result<std::size_t> count_blocks_beyond_spans(sqlite::Connection& connection,
                                              const SeriesKey& key) {
    TUNE_TRY(end, last_span(connection, key));
    TUNE_TRY(select, connection.prepare(
                         "SELECT count(*) FROM (SELECT 1 FROM metric_blocks WHERE run_row = ?1 AND "
                         "key_id = ?2 AND (first_timestamp_ms, first_step, first_value, "
                         "first_is_nan) > (?3, ?4, ?5, ?6) LIMIT ?7)"));
    bind_point(select, key, end.first);
    select.bind(7, static_cast<std::int64_t>(kSpanBlocks) + 1);
    TUNE_TRY_VOID(select.step());
    return static_cast<std::size_t>(select.integer(0));
}

Result<bool> add_span(sqlite::Connection& connection, const SeriesKey& key) {
    TUNE_TRY(count, count_blocks_beyond_spans(connection, key));
    if (count <= kSpanBlocks) return false;
    TUNE_TRY(end, last_span(connection, key));
    std::vector<Packed> blocks;
    Point last;
    {
        TUNE_TRY(select, connection.prepare(kPiecesBehind));
        bind_point(select, key, end.first);
        select.bind(7, static_cast<std::int64_t>(kSpanBlocks));
        for (;;) {
            TUNE_TRY(has_row, select.step());
            if (!has_row) break;
            blocks.push_back(pack(read_piece(select)));
            last = {select.integer(1), select.integer(11),
                    select.integer(13) != 0 ? std::nan("") : select.real(12)};
        }
    }
    TUNE_TRY_VOID(insert_span(connection, key, end.number + 1, last, blocks));
    return true;
}

Result<void> drop_spans_from(sqlite::Connection& connection, const SeriesKey& key,
                             const Point& first) {
    TUNE_TRY(erase, connection.prepare("DELETE FROM metric_spans WHERE run_row = ?1 AND key_id = "
                                       "?2 AND (last_timestamp_ms, last_step, last_value, "
                                       "last_is_nan) >= (?3, ?4, ?5, ?6)"));
    bind_point(erase, key, first);
    return erase.run();
}

Result<void> for_each_piece(sqlite::Connection& connection, const SeriesKey& key,
                            const std::function<void(const SeriesPiece&)>& visit) {
    Point covered{INT64_MIN, INT64_MIN, 0};
    TUNE_TRY(spans, connection.prepare("SELECT summaries, last_timestamp_ms, last_step, "
                                       "last_value, last_is_nan FROM metric_spans WHERE run_row = "
                                       "? AND key_id = ? ORDER BY number"));
    spans.with(key.run_row, key.key_id);
    for (;;) {
        TUNE_TRY(has_row, spans.step());
        if (!has_row) break;
        const std::span<const std::byte> bytes = spans.blob(0);
        if (bytes.size() != kSpanBlocks * sizeof(Packed))
            return Error{Code::kDataLoss, "A span of metric history in the database is damaged."};
        for (std::size_t at = 0; at < bytes.size(); at += sizeof(Packed)) {
            Packed packed;
            std::memcpy(&packed, bytes.data() + at, sizeof packed);
            visit(unpack(packed));
        }
        covered = {spans.integer(1), spans.integer(2),
                   spans.integer(4) != 0 ? std::nan("") : spans.real(3)};
    }
    TUNE_TRY(select, connection.prepare(kPiecesBehind));
    bind_point(select, key, covered);
    select.bind(7, std::int64_t{-1});
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return {};
        visit(read_piece(select));
    }
}

Result<void> fill_spans(sqlite::Connection& connection) {
    SeriesKey key{-1, -1};
    for (;;) {
        {
            TUNE_TRY(select, connection.prepare("SELECT run_row, key_id FROM metric_blocks WHERE "
                                                "(run_row, key_id) > (?1, ?2) ORDER BY run_row, "
                                                "key_id LIMIT 1"));
            TUNE_TRY(has_row, select.with(key.run_row, key.key_id).step());
            if (!has_row) return {};
            key = {select.integer(0), select.integer(1)};
        }
        for (;;) {
            TUNE_TRY(is_added, add_span(connection, key));
            if (!is_added) break;
        }
    }
}

}  // namespace tune::tracker
