-- The folders that agents of a session can write, and how a later process recognizes them.
CREATE TABLE roots (
    session BIGINT NOT NULL REFERENCES sessions,
    -- A path is only valid on one machine. Clones of a machine may share its id, but not its name.
    machine TEXT NOT NULL,
    host    TEXT NOT NULL,
    -- Absolute; bytes, because not every name is valid text.
    path    BYTEA NOT NULL,
    -- The boot id. Devices can only be compared within one boot.
    boot    TEXT NOT NULL,
    -- NULL on file systems that get another one with every mount.
    device  BIGINT,
    inode   BIGINT NOT NULL
);
-- An index on the server cannot contain long paths.
CREATE UNIQUE INDEX roots_by_path ON roots (session, machine, host, sha256(path));
