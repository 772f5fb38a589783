-- Users, and what they may do. As in MLflow 3.17 a grant belongs to a role: one that users share, or
-- a user's own, named __user_<id>__. Ids are never given twice, so that a token or a session of a
-- user who is gone is nobody's.

CREATE TABLE users (
    user_id INTEGER PRIMARY KEY AUTOINCREMENT,
    username TEXT NOT NULL UNIQUE,
    password_hash TEXT NOT NULL,
    is_admin INTEGER NOT NULL
);

CREATE TABLE roles (
    role_id INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    UNIQUE (workspace, name)
);

-- permission: -1 DENY, 0 NO_PERMISSIONS, 1 READ, 2 USE, 3 EDIT, 4 MANAGE. resource_pattern: an
-- experiment's id, a registered model's name, or * for all of the type.
CREATE TABLE role_permissions (
    permission_id INTEGER PRIMARY KEY AUTOINCREMENT,
    role_id INTEGER NOT NULL,
    resource_type TEXT NOT NULL,
    resource_pattern TEXT NOT NULL,
    permission INTEGER NOT NULL,
    UNIQUE (role_id, resource_type, resource_pattern)
);
CREATE INDEX role_permissions_by_resource ON role_permissions (resource_type, resource_pattern);

CREATE TABLE user_roles (
    assignment_id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL,
    role_id INTEGER NOT NULL,
    UNIQUE (user_id, role_id)
);
CREATE INDEX user_roles_by_role ON user_roles (role_id);

-- Logins of browsers, by the SHA-256 of what the cookie holds.
CREATE TABLE user_sessions (
    session_sha256 TEXT PRIMARY KEY,
    user_id INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX user_sessions_by_user ON user_sessions (user_id, created_ms);
