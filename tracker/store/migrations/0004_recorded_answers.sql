-- Answers of requests that carry an Idempotency-Key, so that a repeat gets the same one and changes
-- nothing. Rows are in order of time; the oldest go when they are too old, too many or too large
-- together: end_bytes is the sum of the answers' sizes up to and with this one.

CREATE TABLE recorded_answers (
    answer_row INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    fingerprint TEXT NOT NULL,
    recorded_ms INTEGER NOT NULL,
    end_bytes INTEGER NOT NULL,
    answer TEXT NOT NULL
);
