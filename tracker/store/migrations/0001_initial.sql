-- Version 1. Times are ms since 1970 (UTC). life: 0 = active, 1 = deleted. Names of metrics, params
-- and run tags are interned in "keys": each occurs in thousands of runs.

CREATE TABLE schema_version (
    version INTEGER PRIMARY KEY,
    applied_ms INTEGER NOT NULL
);

-- Position of the last commit that had events (one row).
CREATE TABLE commit_position (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    position INTEGER NOT NULL
);

CREATE TABLE keys (
    key_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);

-- AUTOINCREMENT: ids of experiments are never given twice.
CREATE TABLE experiments (
    experiment_id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    artifact_location TEXT NOT NULL,
    life INTEGER NOT NULL,
    creation_time_ms INTEGER NOT NULL,
    last_update_time_ms INTEGER NOT NULL
);

CREATE TABLE experiment_tags (
    experiment_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (experiment_id, key)
) WITHOUT ROWID;

CREATE TABLE runs (
    run_row INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    experiment_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    user_id TEXT NOT NULL,
    status INTEGER NOT NULL,
    start_time_ms INTEGER NOT NULL,
    end_time_ms INTEGER,
    artifact_uri TEXT NOT NULL,
    life INTEGER NOT NULL,
    deleted_time_ms INTEGER
);

-- The order in which a page of runs is listed by default, so that a page costs its own length only.
CREATE INDEX runs_in_order ON runs (experiment_id, life, start_time_ms DESC, run_id);

CREATE TABLE params (
    run_row INTEGER NOT NULL,
    key_id INTEGER NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (run_row, key_id)
) WITHOUT ROWID;

CREATE TABLE tags (
    run_row INTEGER NOT NULL,
    key_id INTEGER NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (run_row, key_id)
) WITHOUT ROWID;

-- One row a (run, metric): the latest value, and the newest points of its history ("tail"), so that
-- logging one value changes one page. value is 0 where is_nan = 1, as in MLflow, which makes NaN
-- compare as 0 when the latest value is chosen.
CREATE TABLE latest_metrics (
    run_row INTEGER NOT NULL,
    key_id INTEGER NOT NULL,
    value REAL NOT NULL,
    is_nan INTEGER NOT NULL,
    timestamp_ms INTEGER NOT NULL,
    step INTEGER NOT NULL,
    row_count INTEGER NOT NULL,
    tail_count INTEGER NOT NULL,
    tail BLOB NOT NULL,
    PRIMARY KEY (run_row, key_id)
) WITHOUT ROWID;

-- The rest of the history: packed points ordered by (timestamp, step, value, is_nan); the blocks of
-- a metric do not overlap and first_* is the first point of each. min/max/final describe a block
-- without reading its points: "final" is its greatest point by (step, timestamp, value). NULL is NaN
-- (in first_value: 0 with first_is_nan = 1).
CREATE TABLE metric_blocks (
    block_id INTEGER PRIMARY KEY,
    run_row INTEGER NOT NULL,
    key_id INTEGER NOT NULL,
    first_timestamp_ms INTEGER NOT NULL,
    first_step INTEGER NOT NULL,
    first_value REAL NOT NULL,
    first_is_nan INTEGER NOT NULL,
    last_timestamp_ms INTEGER NOT NULL,
    last_step INTEGER NOT NULL,
    last_value REAL,
    row_count INTEGER NOT NULL,
    nan_count INTEGER NOT NULL,
    min_step INTEGER NOT NULL,
    max_step INTEGER NOT NULL,
    min_value REAL,
    max_value REAL,
    final_timestamp_ms INTEGER NOT NULL,
    final_value REAL,
    points BLOB NOT NULL
);

CREATE UNIQUE INDEX metric_blocks_in_order ON metric_blocks
    (run_row, key_id, first_timestamp_ms, first_step, first_value, first_is_nan);

CREATE TABLE datasets (
    dataset_row INTEGER PRIMARY KEY,
    experiment_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    source_type TEXT NOT NULL,
    source TEXT NOT NULL,
    schema TEXT,
    profile TEXT,
    UNIQUE (experiment_id, name, digest)
);

CREATE TABLE dataset_inputs (
    input_row INTEGER PRIMARY KEY,
    run_row INTEGER NOT NULL,
    dataset_row INTEGER NOT NULL,
    UNIQUE (run_row, dataset_row)
);

CREATE INDEX dataset_inputs_by_dataset ON dataset_inputs (dataset_row);

CREATE TABLE input_tags (
    input_row INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (input_row, key)
) WITHOUT ROWID;

-- is_output 0: the run read the model; 1: it made it.
CREATE TABLE run_models (
    run_row INTEGER NOT NULL,
    is_output INTEGER NOT NULL,
    position INTEGER NOT NULL,
    model_id TEXT NOT NULL,
    step INTEGER NOT NULL,
    PRIMARY KEY (run_row, is_output, position)
) WITHOUT ROWID;

CREATE TABLE logged_models (
    model_row INTEGER PRIMARY KEY,
    model_id TEXT NOT NULL UNIQUE,
    experiment_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    artifact_uri TEXT NOT NULL,
    creation_time_ms INTEGER NOT NULL,
    last_updated_time_ms INTEGER NOT NULL,
    status INTEGER NOT NULL,
    status_message TEXT NOT NULL,
    model_type TEXT NOT NULL,
    source_run_id TEXT NOT NULL,
    life INTEGER NOT NULL
);

CREATE INDEX logged_models_in_order ON logged_models
    (experiment_id, life, creation_time_ms DESC, model_id);

CREATE TABLE logged_model_params (
    model_row INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (model_row, key)
) WITHOUT ROWID;

CREATE TABLE logged_model_tags (
    model_row INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (model_row, key)
) WITHOUT ROWID;

-- value is NULL for NaN.
CREATE TABLE logged_model_metrics (
    model_row INTEGER NOT NULL,
    key TEXT NOT NULL,
    timestamp_ms INTEGER NOT NULL,
    step INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    value REAL,
    dataset_name TEXT NOT NULL,
    dataset_digest TEXT NOT NULL,
    PRIMARY KEY (model_row, key, timestamp_ms, step, run_id)
) WITHOUT ROWID;

CREATE TABLE documents (
    document_row INTEGER PRIMARY KEY,
    collection TEXT NOT NULL,
    key TEXT NOT NULL,
    json_text TEXT NOT NULL,
    UNIQUE (collection, key)
);
