-- What has happened to a task, for its operator.
ALTER TABLE @schema@.task ADD COLUMN timeline bytea NOT NULL DEFAULT '';

-- What an operator looks at first.
CREATE INDEX task_open ON @schema@.task (created, id) WHERE phase < 9;
