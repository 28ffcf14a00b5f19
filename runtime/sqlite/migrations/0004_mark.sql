-- What names the last write of a task, and says what its worker has it for.
ALTER TABLE task ADD COLUMN mark BLOB NOT NULL DEFAULT x'';
