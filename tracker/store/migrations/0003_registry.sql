-- The model registry. Times are ms since 1970 (UTC).

-- is_prompt: the tag mlflow.prompt.is_prompt is 'true'. prompt_version_count: versions, deleted ones
-- too, with that tag. Both are kept in step with the tags, so that leaving prompts out of a search
-- is a range of an index and not an anti-join.
CREATE TABLE registered_models (
    registered_row INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    description TEXT NOT NULL,
    creation_time_ms INTEGER NOT NULL,
    last_updated_time_ms INTEGER NOT NULL,
    is_prompt INTEGER NOT NULL,
    prompt_version_count INTEGER NOT NULL
);

-- The two orders of searches.
CREATE INDEX registered_models_by_name ON registered_models (is_prompt, name);
CREATE INDEX registered_models_by_time ON registered_models
    (is_prompt, last_updated_time_ms DESC, name);

CREATE TABLE registered_model_tags (
    registered_row INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (registered_row, key)
) WITHOUT ROWID;

CREATE TABLE registered_model_aliases (
    registered_row INTEGER NOT NULL,
    alias TEXT NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (registered_row, alias)
) WITHOUT ROWID;

-- name repeats the registered model's, so that the orders below are indexes; a rename rewrites all
-- versions anyway (their time of last change). stage: 0 None, 1 Staging, 2 Production, 3 Archived,
-- 4 deleted. visibility: 0 = found by default, 1 = of a model that has a version tagged as a prompt,
-- 2 = deleted. NULL is "not given", which the wire distinguishes from empty.
CREATE TABLE model_versions (
    version_row INTEGER PRIMARY KEY,
    registered_row INTEGER NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    creation_time_ms INTEGER NOT NULL,
    last_updated_time_ms INTEGER NOT NULL,
    description TEXT,
    user_id TEXT,
    stage INTEGER NOT NULL,
    source TEXT NOT NULL,
    storage_location TEXT NOT NULL,
    run_id TEXT,
    run_link TEXT,
    status INTEGER NOT NULL,
    status_message TEXT NOT NULL,
    visibility INTEGER NOT NULL,
    UNIQUE (registered_row, version)
);

-- The latest version of a stage is the last entry of a range.
CREATE INDEX model_versions_by_stage ON model_versions (registered_row, stage, version);
-- The default order of searches; and by name, the commonest filter.
CREATE INDEX model_versions_in_order ON model_versions
    (visibility, last_updated_time_ms DESC, name, version DESC);
CREATE INDEX model_versions_by_name ON model_versions (visibility, name, version DESC);
CREATE INDEX model_versions_by_run ON model_versions (run_id);

CREATE TABLE model_version_tags (
    version_row INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (version_row, key)
) WITHOUT ROWID;
