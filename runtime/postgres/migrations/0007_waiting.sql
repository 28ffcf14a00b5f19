-- The tasks that wait for a worker, in the order in which the accounts take turns. An account may be longer than an index
-- allows.
CREATE INDEX task_waiting ON @schema@.task (
  tool, (CASE WHEN length(account) <= 512 THEN account ELSE substr(account, 1, 512) || sha256(account) END), created, id
) WHERE phase < 9 AND worker = '';
