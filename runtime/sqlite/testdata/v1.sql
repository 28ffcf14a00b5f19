-- A populated file of this version, as its users have it. Do not change it.
PRAGMA journal_mode = WAL;

-- 0001_tasks.sql
BEGIN IMMEDIATE;
-- Strings that a requestor or a handler chooses are blobs: text refuses invalid UTF-8, and blobs
-- compare byte by byte. Times are microseconds since 1970. Rowid tables are twice as fast as
-- tables WITHOUT ROWID if their keys are random.
PRAGMA application_id = 1835234419; -- "mcts": this file belongs to mcptask

CREATE TABLE schema_version (version INTEGER PRIMARY KEY) STRICT;

-- A worker's lease is that of all its unfinished tasks.
CREATE TABLE worker (id BLOB PRIMARY KEY, until INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- What the tasks of an account (a...), of all anonymous callers (n) and of all callers (s) add up to.
CREATE TABLE account (
  key BLOB PRIMARY KEY, stored INTEGER NOT NULL, unfinished INTEGER NOT NULL, bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A task without its long bodies, which have tables of their own: a report rewrites a short row.
CREATE TABLE task (
  seq INTEGER PRIMARY KEY,               -- never given twice: the number of a change, and a place in it
  id BLOB NOT NULL UNIQUE, version INTEGER NOT NULL,
  principal BLOB NOT NULL, account BLOB NOT NULL, tool BLOB NOT NULL,
  idem BLOB,                             -- the idempotency key; NULL: none
  phase INTEGER NOT NULL,                -- 0 queued, 1 running, 2 input required, 9 done
  outcome INTEGER NOT NULL,              -- 0 none yet, 1 result, 2 error, 3 cancelled
  is_error INTEGER NOT NULL, cancel INTEGER NOT NULL, message BLOB NOT NULL,
  done REAL, total REAL,                 -- the progress; NULL: not a number
  created INTEGER NOT NULL, updated INTEGER NOT NULL, terminal INTEGER NOT NULL, expires INTEGER NOT NULL,
  attempt INTEGER NOT NULL, tries INTEGER NOT NULL, worker BLOB NOT NULL,
  bytes INTEGER NOT NULL,                -- what the task adds to its accounts
  asked INTEGER NOT NULL,                -- the version that wrote the inputs; 0: there were none
  terms BLOB NOT NULL,                   -- revision, external ID, methods of the requestor, keep, poll, trace
  arguments BLOB, result BLOB            -- the bodies, if they are short; NULL: see below
) STRICT;
CREATE UNIQUE INDEX task_idem ON task (principal, tool, idem) WHERE idem IS NOT NULL;
CREATE INDEX task_list ON task (principal, created, id);
CREATE INDEX task_created ON task (created, id);
CREATE INDEX task_expires ON task (expires);
CREATE INDEX task_worker ON task (worker, tool) WHERE phase < 9;

-- The long bodies, and all questions, apart from the row.
CREATE TABLE arguments (seq INTEGER PRIMARY KEY REFERENCES task ON DELETE CASCADE, body BLOB NOT NULL) STRICT;
CREATE TABLE inputs (seq INTEGER PRIMARY KEY REFERENCES task ON DELETE CASCADE, body BLOB NOT NULL) STRICT;
CREATE TABLE outcome (seq INTEGER PRIMARY KEY REFERENCES task ON DELETE CASCADE, body BLOB NOT NULL) STRICT;

-- What tells an expired ID from an unknown one, for a while.
CREATE TABLE tombstone (id BLOB PRIMARY KEY, principal BLOB NOT NULL, until INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX tombstone_until ON tombstone (until);

-- What other processes read of the latest commits, one row for each. The last row always stays, so that
-- no number is given twice.
CREATE TABLE change (n INTEGER PRIMARY KEY, news BLOB NOT NULL) STRICT;
INSERT INTO schema_version VALUES (1);
COMMIT;

INSERT INTO worker VALUES (x'776f726b6572', 1795390121905797);
INSERT INTO account VALUES (x'61', 2, 0, 56);
INSERT INTO account VALUES (x'6170ff', 1, 1, 388);
INSERT INTO account VALUES (x'6e', 2, 0, 56);
INSERT INTO account VALUES (x'73', 3, 1, 444);
INSERT INTO task VALUES (65536, x'66756c6c', 1, x'70ff', x'70ff', x'72756e', x'6b6579', 2, 0, 0, 1, x'61736b73', 1.5, 4, 1795348800000123, 1795348801000123, -9223372036854775808, 4951022400000123, 2, 1, x'776f726b6572', 388, 1, x'010a323032352d31312d3235046e616d650112656c696369746174696f6e2f6372656174658080c58bc6d10180a8d6b9071230302d312d322d30310a76656e646f723d78', x'7b20226e223a2031207d', NULL);
INSERT INTO task VALUES (131072, x'646f6e65', 1, x'', x'', x'72756e', NULL, 9, 1, 1, 0, x'', 0, 0, 1795348802000123, 1795348803000123, 1795348803000123, 4951022402000123, 0, 0, x'', 36, 0, x'01000000000000', NULL, x'011e7b22636f6e74656e74223a5b5d2c2269734572726f72223a747275657d00');
INSERT INTO task VALUES (196608, x'6661696c6564', 1, x'', x'', x'72756e', NULL, 9, 2, 0, 0, x'', 0, 0, 1795348804000123, 1795348803000123, 1795348803000123, 4951022402000123, 0, 0, x'', 20, 0, x'01000000000000', NULL, x'010001b5fd030b776f726b6572206c6f737400');
INSERT INTO inputs VALUES (65536, x'0102047374657012656c696369746174696f6e2f637265617465107b226d657373616765223a223f227d037b7d0b6f75747374616e64696e670000067374657023320a726f6f74732f6c697374000008616e737765726564000101026e6f0231');
INSERT INTO change VALUES (1, x'0101000466756c6c020e696e7075745f726571756972656406776f726b6572');
INSERT INTO change VALUES (2, x'01010004646f6e650204646f6e6500');
INSERT INTO change VALUES (3, x'010100066661696c65640204646f6e6500');
INSERT INTO tombstone VALUES (CAST('expired' AS BLOB), CAST('q' AS BLOB), 9000000000000000);
