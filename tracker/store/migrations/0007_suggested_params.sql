-- Params that a tuner set before the run's own program logged them. The program may log each once
-- more in its own words: "True" where the tuner wrote "true" is no change that MLflow would refuse.
CREATE TABLE suggested_params (
    run_row INTEGER NOT NULL,
    key_id INTEGER NOT NULL,
    PRIMARY KEY (run_row, key_id)
) WITHOUT ROWID;
