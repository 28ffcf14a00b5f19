-- The tasks that wait for a worker, in the order in which the accounts take turns.
CREATE INDEX task_waiting ON task (tool, account, created, id) WHERE phase < 9 AND worker = x'';
