-- What names the last write of a task, and says what its worker has it for.
ALTER TABLE @schema@.task ADD COLUMN mark bytea NOT NULL DEFAULT '';
