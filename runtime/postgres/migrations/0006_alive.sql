-- The workers whose processes are connected. The session that listens for the process holds an advisory lock on the key.
-- A crash of the server empties the table, and boot, the server's start, tells rows of before a restart. So a row whose
-- key is free never means a server that has lost its sessions.
CREATE UNLOGGED TABLE @schema@.alive (worker bytea PRIMARY KEY, key bigint NOT NULL, boot bigint NOT NULL);
