-- Where the history of a metric is divided: by whoever runs a program once more for the same run.
-- From a mark on the metric's points are noted in the order in which they came, too: the history is
-- ordered by the clocks of those who log.
CREATE TABLE metric_marks (
    run_row INTEGER NOT NULL,
    key_id INTEGER NOT NULL,
    mark INTEGER NOT NULL,
    PRIMARY KEY (run_row, key_id)
) WITHOUT ROWID;

-- value is NULL for NaN.
CREATE TABLE marked_points (
    point_row INTEGER PRIMARY KEY,
    run_row INTEGER NOT NULL,
    key_id INTEGER NOT NULL,
    mark INTEGER NOT NULL,
    timestamp_ms INTEGER NOT NULL,
    step INTEGER NOT NULL,
    value REAL
);

CREATE INDEX marked_points_in_order ON marked_points (run_row, key_id);
