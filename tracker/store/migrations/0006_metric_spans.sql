-- A level above the blocks of a metric's history: the summaries of kSpanBlocks blocks that follow
-- each other, packed into one page. Spans are numbered from 0 and cover the history's first blocks
-- without a gap; never its newest block, which still grows. last_* is the first point of the last
-- block covered, as first_* in metric_blocks.
CREATE TABLE metric_spans (
    span_row INTEGER PRIMARY KEY,
    run_row INTEGER NOT NULL,
    key_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    last_timestamp_ms INTEGER NOT NULL,
    last_step INTEGER NOT NULL,
    last_value REAL NOT NULL,
    last_is_nan INTEGER NOT NULL,
    summaries BLOB NOT NULL
);

CREATE UNIQUE INDEX metric_spans_in_order ON metric_spans (run_row, key_id, number);
