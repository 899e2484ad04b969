-- The folders that agents of a session can write, and by what a later process knows them again.
CREATE TABLE roots (
    session BIGINT NOT NULL REFERENCES sessions,
    -- A path means something on one machine only. Copies of a machine may share its id, but not its name.
    machine TEXT NOT NULL,
    host    TEXT NOT NULL,
    -- Absolute; bytes, since not every name is text.
    path    BYTEA NOT NULL,
    -- Different after every start of the machine. Devices are only comparable within one.
    boot    TEXT NOT NULL,
    -- Empty on file systems that get another one with every mount.
    device  BIGINT,
    inode   BIGINT NOT NULL
);
-- An index of the server holds no long paths.
CREATE UNIQUE INDEX roots_by_path ON roots (session, machine, host, sha256(path));
