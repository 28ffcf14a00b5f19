-- What has happened to a task, for its operator.
ALTER TABLE task ADD COLUMN timeline BLOB NOT NULL DEFAULT x'';
