-- What has happened to a task, for its operator.
ALTER TABLE task ADD COLUMN timeline BLOB NOT NULL DEFAULT x'';

-- What an operator looks at first.
CREATE INDEX task_open ON task (created, id) WHERE phase < 9;
