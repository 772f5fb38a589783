// All SQL on blocks and tails in one place, so that writer and readers cannot disagree on the
// columns. A block is found by the greatest first point that is not behind the one looked for;
// blocks do not overlap, so that is the only one that can hold it.

#include "tracker/store/metrics/metric_table.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "tracker/store/metrics/metric_log.h"

namespace tune::tracker {
namespace {

std::span<const std::byte> as_blob(const std::string& text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

Error no_block() {
    return {Code::kDataLoss, "Blocks of a metric's history are missing in the database."};
}

/// Reads (block_id, row_count, points) of the statement's row.
Result<Block> read_block(const sqlite::Statement& select) {
    Block block;
    block.block_id = select.integer(0);
    const auto count = static_cast<std::size_t>(select.integer(1));
    TUNE_TRY_VOID(decode_points(select.blob(2), count, block.points));
    if (block.points.empty()) return no_block();
    return block;
}

}  // namespace

Result<Block> read_block_holding(sqlite::Connection& connection, const SeriesKey& key,
                                 const Point& point) {
    TUNE_TRY(before, connection.prepare(
                         "SELECT block_id, row_count, points FROM metric_blocks "
                         "WHERE run_row = ?1 AND key_id = ?2 AND (first_timestamp_ms, first_step, "
                         "first_value, first_is_nan) <= (?3, ?4, ?5, ?6) "
                         "ORDER BY first_timestamp_ms DESC, first_step DESC, first_value DESC, "
                         "first_is_nan DESC LIMIT 1"));
    const bool is_nan = std::isnan(point.value);
    before.with(key.run_row, key.key_id, point.timestamp_ms, point.step, is_nan ? 0 : point.value,
                std::int64_t{is_nan});
    TUNE_TRY(has_row, before.step());
    if (has_row) return read_block(before);
    TUNE_TRY(first, connection.prepare("SELECT block_id, row_count, points FROM metric_blocks "
                                       "WHERE run_row = ?1 AND key_id = ?2 "
                                       "ORDER BY first_timestamp_ms, first_step, first_value, "
                                       "first_is_nan LIMIT 1"));
    TUNE_TRY(has_first, first.with(key.run_row, key.key_id).step());
    if (!has_first) return no_block();
    return read_block(first);
}

Result<std::int64_t> insert_block(sqlite::Connection& connection, const SeriesKey& key,
                                  std::span<const Point> points) {
    const BlockSummary summary = summarize(points);
    const Point& first = points.front();
    const Point& last = points.back();
    const bool is_nan = std::isnan(first.value);
    const std::string encoded = encode_points(points);
    TUNE_TRY(insert,
             connection.prepare(
                 "INSERT INTO metric_blocks (run_row, key_id, first_timestamp_ms, first_step, "
                 "first_value, first_is_nan, last_timestamp_ms, last_step, last_value, row_count, "
                 "nan_count, min_step, max_step, min_value, max_value, final_timestamp_ms, "
                 "final_value, points) "
                 "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
    insert.with(key.run_row, key.key_id, first.timestamp_ms, first.step, is_nan ? 0 : first.value,
                std::int64_t{is_nan}, last.timestamp_ms, last.step, last.value, summary.row_count,
                summary.nan_count, summary.min_step, summary.max_step, summary.min_value,
                summary.max_value, summary.final.timestamp_ms, summary.final.value);
    insert.bind_blob(18, as_blob(encoded));
    TUNE_TRY_VOID(insert.run());
    return connection.last_insert_row();
}

Result<void> extend_block(sqlite::Connection& connection, std::int64_t block_id, const Point& last,
                          std::span<const Point> points) {
    TUNE_TRY(select, connection.prepare("SELECT row_count, nan_count, min_step, max_step, "
                                        "min_value, max_value, final_timestamp_ms, final_value, "
                                        "points FROM metric_blocks WHERE block_id = ?"));
    TUNE_TRY(has_row, select.with(block_id).step());
    if (!has_row) return no_block();
    const auto real = [&](int column) {
        return select.is_null(column) ? std::nan("") : select.real(column);
    };
    const BlockSummary old{select.integer(0),
                           select.integer(1),
                           select.integer(2),
                           select.integer(3),
                           real(4),
                           real(5),
                           Point{select.integer(6), select.integer(3), real(7)}};
    const auto bytes = select.blob(8);
    std::string encoded(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    select.reset();
    append_points(encoded, last, points);
    const BlockSummary both = merge(old, summarize(points));
    TUNE_TRY(update,
             connection.prepare("UPDATE metric_blocks SET last_timestamp_ms = ?2, last_step = ?3, "
                                "last_value = ?4, row_count = ?5, nan_count = ?6, min_step = ?7, "
                                "max_step = ?8, min_value = ?9, max_value = ?10, "
                                "final_timestamp_ms = ?11, final_value = ?12, points = ?13 "
                                "WHERE block_id = ?1"));
    const Point& end = points.back();
    update.with(block_id, end.timestamp_ms, end.step, end.value, both.row_count, both.nan_count,
                both.min_step, both.max_step, both.min_value, both.max_value,
                both.final.timestamp_ms, both.final.value);
    update.bind_blob(13, as_blob(encoded));
    return update.run();
}

Result<void> delete_block(sqlite::Connection& connection, std::int64_t block_id) {
    TUNE_TRY(erase, connection.prepare("DELETE FROM metric_blocks WHERE block_id = ?"));
    return erase.with(block_id).run();
}

Result<std::vector<Point>> read_tail(sqlite::Connection& connection, const SeriesKey& key) {
    std::vector<Point> points;
    TUNE_TRY(select, connection.prepare("SELECT tail_count, tail FROM latest_metrics "
                                        "WHERE run_row = ? AND key_id = ?"));
    TUNE_TRY(has_row, select.with(key.run_row, key.key_id).step());
    if (!has_row) return points;
    const auto count = static_cast<std::size_t>(select.integer(0));
    TUNE_TRY_VOID(decode_points(select.blob(1), count, points));
    std::sort(points.begin(), points.end(), is_before);
    return points;
}

}  // namespace tune::tracker
