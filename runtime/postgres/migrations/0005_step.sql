-- The steps of a task, by its seq. A report does not write them again.
CREATE TABLE @schema@.step (
  task       bigint NOT NULL,
  name       bytea  NOT NULL,
  body       bytea  NOT NULL,
  PRIMARY KEY (task, name)
) WITH (fillfactor = 70);
ALTER TABLE @schema@.task ADD COLUMN step_bytes bigint NOT NULL DEFAULT 0;

-- How long the runs of the handler have worked, in nanoseconds.
ALTER TABLE @schema@.task ADD COLUMN worked bigint NOT NULL DEFAULT 0;
