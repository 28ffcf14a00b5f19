-- What has happened to a task, for its operator.
ALTER TABLE @schema@.task ADD COLUMN timeline bytea NOT NULL DEFAULT '';
