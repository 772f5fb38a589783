-- A deleted experiment no longer keeps its name from others: names are unique among active ones.
-- The table is made anew because a column's UNIQUE cannot be dropped; ids stay, and none is given
-- twice.

CREATE TABLE experiments_new (
    experiment_id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    artifact_location TEXT NOT NULL,
    life INTEGER NOT NULL,
    creation_time_ms INTEGER NOT NULL,
    last_update_time_ms INTEGER NOT NULL
);

INSERT INTO experiments_new SELECT experiment_id, name, artifact_location, life, creation_time_ms,
    last_update_time_ms FROM experiments;

UPDATE sqlite_sequence SET seq = coalesce((SELECT seq FROM sqlite_sequence
    WHERE name = 'experiments'), seq)
    WHERE name = 'experiments_new';

DROP TABLE experiments;

ALTER TABLE experiments_new RENAME TO experiments;

CREATE UNIQUE INDEX experiments_by_active_name ON experiments (name) WHERE life = 0;

-- get-by-name, also of deleted ones: the active one first, then the one that was deleted last.
CREATE INDEX experiments_by_name ON experiments (name, life, last_update_time_ms DESC);

-- Folders of artifacts whose owner was removed for good, until they are gone from the disk too.
CREATE TABLE garbage_folders (
    folder_row INTEGER PRIMARY KEY,
    artifact_uri TEXT NOT NULL
);
