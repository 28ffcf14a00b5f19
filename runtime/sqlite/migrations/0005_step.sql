-- The steps of a task, by its seq. A report does not write them again.
CREATE TABLE step (
  task INTEGER NOT NULL REFERENCES task ON DELETE CASCADE, name BLOB NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY (task, name)
) STRICT, WITHOUT ROWID;
ALTER TABLE task ADD COLUMN step_bytes INTEGER NOT NULL DEFAULT 0;

-- How long the runs of the handler have worked, in nanoseconds.
ALTER TABLE task ADD COLUMN worked INTEGER NOT NULL DEFAULT 0;
