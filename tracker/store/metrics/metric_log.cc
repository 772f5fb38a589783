// Invariants of a series: blocks hold disjoint, ascending ranges of points; the tail holds points
// in order of arrival, not yet in a block; row_count counts both. Points newer than all blocks, the
// usual case, extend the last block. An older one is merged into the block that holds its place,
// which is replaced, and the spans that cover it are dropped first, so that no summary outlives its
// block. A repeat of a known point changes nothing, which makes a retried batch safe.

#include "tracker/store/metrics/metric_log.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tracker/store/metrics/block_cache.h"
#include "tracker/store/metrics/metric_spans.h"
#include "tracker/store/metrics/metric_table.h"

namespace tune::tracker {
namespace {

bool is_same(const Point& a, const Point& b) {
    return compare_in_time(a, b) == 0;
}

/// MLflow's choice of the latest value: greater by (step, timestamp, value), where NaN counts as 0.
bool is_later(const Point& a, const Point& b) {
    if (a.step != b.step) return a.step > b.step;
    if (a.timestamp_ms != b.timestamp_ms) return a.timestamp_ms > b.timestamp_ms;
    const double left = std::isnan(a.value) ? 0 : a.value;
    const double right = std::isnan(b.value) ? 0 : b.value;
    return left > right;
}

std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

MetricLog::MetricLog(sqlite::Connection& connection)
    : connection_(connection), late_blocks_(std::make_unique<BlockCache>()) {}

MetricLog::~MetricLog() = default;

void MetricLog::forget() {
    heads_.clear();
    late_blocks_->clear();
    changed_.clear();
}

void MetricLog::forget_runs(const std::unordered_set<std::int64_t>& run_rows) {
    if (run_rows.empty()) return;
    late_blocks_->clear();
    std::erase_if(heads_,
                  [&](const auto& entry) { return run_rows.contains(entry.first.run_row); });
}

void MetricLog::trim() {
    if (heads_.size() > kSeriesCacheMax && changed_.empty()) heads_.clear();
}

Result<MetricLog::Head*> MetricLog::head_of(SeriesKey key) {
    const auto [place, is_new] = heads_.try_emplace(key);
    if (is_new) {
        if (Result<void> loaded = load(key, place->second); !loaded) {
            heads_.erase(place);
            return std::move(loaded).error();
        }
    }
    return &place->second;
}

Result<void> MetricLog::load(SeriesKey key, Head& head) {
    TUNE_TRY(select, connection_.prepare("SELECT value, is_nan, timestamp_ms, step, row_count, "
                                         "tail_count, tail, min_value, max_value "
                                         "FROM latest_metrics "
                                         "WHERE run_row = ? AND key_id = ?"));
    TUNE_TRY(has_row, select.with(key.run_row, key.key_id).step());
    if (!has_row) return {};
    head.is_stored = true;
    head.latest = {select.integer(2), select.integer(3),
                   select.integer(1) != 0 ? std::nan("") : select.real(0)};
    head.row_count = select.integer(4);
    if (!select.is_null(7)) head.min_value = select.real(7);
    if (!select.is_null(8)) head.max_value = select.real(8);
    const auto tail_count = static_cast<std::size_t>(select.integer(5));
    TUNE_TRY_VOID(decode_points(select.blob(6), tail_count, head.tail));
    if (head.row_count > select.integer(5)) TUNE_TRY_VOID(load_last_block(key, head));
    if (head.has_blocks) head.greatest = head.block_greatest;
    for (std::size_t i = 0; i < head.tail.size(); ++i)
        if ((i == 0 && !head.has_blocks) || is_before(head.greatest, head.tail[i]))
            head.greatest = head.tail[i];
    return {};
}

Result<void> MetricLog::load_last_block(SeriesKey key, Head& head) {
    TUNE_TRY(select, connection_.prepare(
                         "SELECT block_id, row_count, last_timestamp_ms, last_step, last_value "
                         "FROM metric_blocks WHERE run_row = ? AND key_id = ? "
                         "ORDER BY first_timestamp_ms DESC, first_step DESC, first_value DESC, "
                         "first_is_nan DESC LIMIT 1"));
    TUNE_TRY(has_row, select.with(key.run_row, key.key_id).step());
    if (!has_row) return Error{Code::kDataLoss, "Blocks of a metric's history are missing."};
    head.has_blocks = true;
    head.last_block_id = select.integer(0);
    head.last_block_count = select.integer(1);
    head.block_greatest = {select.integer(2), select.integer(3),
                           select.is_null(4) ? std::nan("") : select.real(4)};
    return {};
}

Result<bool> MetricLog::is_known(SeriesKey key, const Head& head, const Point& point) {
    if (head.row_count == 0 || is_before(head.greatest, point)) return false;
    for (const Point& known : head.tail)
        if (known.timestamp_ms == point.timestamp_ms && is_same(known, point)) return true;
    if (!head.has_blocks || is_before(head.block_greatest, point)) return false;
    const auto has_it = [&point](const std::vector<Point>& points) {
        return std::binary_search(points.begin(), points.end(), point, is_before);
    };
    if (const auto* points = late_blocks_->find(key, point)) return has_it(*points);
    ++late_reads_;
    TUNE_TRY(block, read_block_holding(connection_, key, point));
    late_blocks_->put(key, block.points);
    return has_it(block.points);
}

Result<bool> MetricLog::add(SeriesKey key, const Point& point) {
    TUNE_TRY(head, head_of(key));
    TUNE_TRY(known, is_known(key, *head, point));
    if (known) return false;
    if (head->row_count == 0 || is_later(point, head->latest)) head->latest = point;
    if (head->row_count == 0 || is_before(head->greatest, point)) head->greatest = point;
    // fmin and fmax ignore a NaN on one side.
    head->min_value = std::fmin(head->min_value, point.value);
    head->max_value = std::fmax(head->max_value, point.value);
    head->row_count += 1;
    head->tail.push_back(point);
    if (!head->is_changed) {
        head->is_changed = true;
        changed_.emplace_back(key, head);
    }
    if (head->tail.size() >= kHeadPointsMax) TUNE_TRY_VOID(fold(key, *head));
    return true;
}

Result<void> MetricLog::flush() {
    for (auto& [key, head] : changed_) {
        if (head->tail.size() > kTailPointsMax) TUNE_TRY_VOID(fold(key, *head));
        TUNE_TRY_VOID(store(key, *head));
        head->is_changed = false;
    }
    changed_.clear();
    return {};
}

Result<void> MetricLog::store(SeriesKey key, Head& head) {
    const bool is_nan = std::isnan(head.latest.value);
    const double value = is_nan ? 0 : head.latest.value;
    const std::string tail = encode_points(head.tail);
    const char* sql =
        head.is_stored
            ? "UPDATE latest_metrics SET value = ?3, is_nan = ?4, timestamp_ms = ?5, step = ?6, "
              "row_count = ?7, tail_count = ?8, tail = ?9, min_value = ?10, max_value = ?11 WHERE "
              "run_row = ?1 AND key_id = ?2"
            : "INSERT INTO latest_metrics (run_row, key_id, value, is_nan, timestamp_ms, step, "
              "row_count, tail_count, tail, min_value, max_value) VALUES (?1, ?2, ?3, ?4, ?5, ?6, "
              "?7, ?8, ?9, ?10, ?11)";
    TUNE_TRY(write, connection_.prepare(sql));
    write.with(key.run_row, key.key_id, value, std::int64_t{is_nan}, head.latest.timestamp_ms,
               head.latest.step, head.row_count, static_cast<std::int64_t>(head.tail.size()));
    write.bind_blob(9, bytes_of(tail));
    write.bind(10, head.min_value);  // NaN becomes NULL
    write.bind(11, head.max_value);
    TUNE_TRY_VOID(write.run());
    head.is_stored = true;
    touched_.push_back(key);
    return {};
}

/// Moves the tail into blocks.
Result<void> MetricLog::fold(SeriesKey key, Head& head) {
    std::vector<Point> points = std::exchange(head.tail, {});
    if (!std::is_sorted(points.begin(), points.end(), is_before))
        std::sort(points.begin(), points.end(), is_before);
    std::span<const Point> rest = points;
    while (!rest.empty() && head.has_blocks && is_before(rest.front(), head.block_greatest)) {
        TUNE_TRY(done, insert_into_blocks(key, head, rest));
        rest = rest.subspan(done);
    }
    TUNE_TRY_VOID(append_to_blocks(key, head, rest));
    points.clear();
    head.tail = std::move(points);  // keeps its memory for the next points
    if (head.tail.capacity() > 4 * kTailPointsMax) head.tail = {};
    return {};
}

Result<void> MetricLog::append_to_blocks(SeriesKey key, Head& head, std::span<const Point> points) {
    if (!points.empty() && head.has_blocks) {
        TUNE_TRY(done, extend_last_block(head, points));
        points = points.subspan(done);
    }
    while (!points.empty()) {
        const auto part = points.first(std::min(points.size(), kBlockPointsMax));
        TUNE_TRY(block_id, insert_block(connection_, key, part));
        TUNE_TRY_VOID(note_new_block(key, head));
        head.has_blocks = true;
        head.last_block_id = block_id;
        head.last_block_count = static_cast<std::int64_t>(part.size());
        head.block_greatest = part.back();
        points = points.subspan(part.size());
    }
    return {};
}

/// Behind kSpanBlocks others, the new block makes a span of them possible.
Result<void> MetricLog::note_new_block(SeriesKey key, Head& head) {
    if (!head.has_blocks) {
        head.blocks_beyond_spans = 1;
        return {};
    }
    if (!head.blocks_beyond_spans) {
        TUNE_TRY(count, count_blocks_beyond_spans(connection_, key));
        head.blocks_beyond_spans = count;
    } else {
        ++*head.blocks_beyond_spans;
    }
    if (*head.blocks_beyond_spans <= kSpanBlocks) return {};
    TUNE_TRY(is_added, add_span(connection_, key));
    static_cast<void>(is_added);
    head.blocks_beyond_spans.reset();
    return {};
}

/// Adds points newer than all in blocks to the last block; returns how many fitted.
Result<std::size_t> MetricLog::extend_last_block(Head& head, std::span<const Point> points) {
    const auto used = static_cast<std::size_t>(head.last_block_count);
    if (used >= kBlockPointsMax) return std::size_t{0};
    const auto part = points.first(std::min(points.size(), kBlockPointsMax - used));
    TUNE_TRY_VOID(extend_block(connection_, head.last_block_id, head.block_greatest, part));
    head.last_block_count += static_cast<std::int64_t>(part.size());
    head.block_greatest = part.back();
    return part.size();
}

/// Adds the points that belong into the block of the first of them; returns how many that were.
Result<std::size_t> MetricLog::insert_into_blocks(SeriesKey key, Head& head,
                                                  std::span<const Point> points) {
    TUNE_TRY(block, read_block_holding(connection_, key, points.front()));
    // A later block begins behind this one's last point, or there is none.
    std::size_t count = 1;
    while (count < points.size() && is_before(points[count], block.points.back())) ++count;
    std::vector<Point> merged;
    merged.reserve(block.points.size() + count);
    std::merge(block.points.begin(), block.points.end(), points.begin(),
               points.begin() + static_cast<std::ptrdiff_t>(count), std::back_inserter(merged),
               is_before);
    TUNE_TRY_VOID(drop_spans_from(connection_, key, block.points.front()));
    head.blocks_beyond_spans.reset();
    TUNE_TRY_VOID(delete_block(connection_, block.block_id));
    // Two halves instead of one full block and a crumb: the next insertion finds room.
    const std::size_t parts = (merged.size() + kBlockPointsMax - 1) / kBlockPointsMax;
    const std::size_t part_max = (merged.size() + parts - 1) / parts;
    std::span<const Point> rest = merged;
    while (!rest.empty()) {
        const auto part = rest.first(std::min(rest.size(), part_max));
        TUNE_TRY(block_id, insert_block(connection_, key, part));
        rest = rest.subspan(part.size());
        // The next late points probably follow the last of these; and no older copy stays.
        if (!is_before(points[count - 1], part.front())) late_blocks_->put(key, part);
        if (block.block_id == head.last_block_id && rest.empty()) {
            head.last_block_id = block_id;
            head.last_block_count = static_cast<std::int64_t>(part.size());
        }
    }
    return count;
}

}  // namespace tune::tracker
