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

-- 0002_timeline.sql
BEGIN IMMEDIATE;
-- What has happened to a task, for its operator.
ALTER TABLE task ADD COLUMN timeline BLOB NOT NULL DEFAULT x'';

-- What an operator looks at first.
CREATE INDEX task_open ON task (created, id) WHERE phase < 9;
INSERT INTO schema_version VALUES (2);
COMMIT;

-- 0003_sessions.sql
BEGIN IMMEDIATE;
-- The secret with which servers sign session IDs.
CREATE TABLE session_key (
  one    INTEGER PRIMARY KEY CHECK (one = 1),
  secret BLOB NOT NULL
) STRICT;

-- The sessions that their clients have ended, until their IDs are void anyway.
CREATE TABLE ended_session (
  principal BLOB    NOT NULL,
  session   BLOB    NOT NULL,
  until     INTEGER NOT NULL,
  PRIMARY KEY (principal, session)
) STRICT, WITHOUT ROWID;
CREATE INDEX ended_session_until ON ended_session (until);
INSERT INTO schema_version VALUES (3);
COMMIT;

-- 0004_mark.sql
BEGIN IMMEDIATE;
-- What names the last write of a task, and says what its worker has it for.
ALTER TABLE task ADD COLUMN mark BLOB NOT NULL DEFAULT x'';
INSERT INTO schema_version VALUES (4);
COMMIT;

-- 0005_step.sql
BEGIN IMMEDIATE;
-- The steps of a task, by its seq. A report does not write them again.
CREATE TABLE step (
  task INTEGER NOT NULL REFERENCES task ON DELETE CASCADE, name BLOB NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY (task, name)
) STRICT, WITHOUT ROWID;
ALTER TABLE task ADD COLUMN step_bytes INTEGER NOT NULL DEFAULT 0;

-- How long the runs of the handler have worked, in nanoseconds.
ALTER TABLE task ADD COLUMN worked INTEGER NOT NULL DEFAULT 0;
INSERT INTO schema_version VALUES (5);
COMMIT;

-- 0006_waiting.sql
BEGIN IMMEDIATE;
-- The tasks that wait for a worker, in the order in which the accounts take turns.
CREATE INDEX task_waiting ON task (tool, account, created, id) WHERE phase < 9 AND worker = x'';
INSERT INTO schema_version VALUES (6);
COMMIT;

-- 0007_failed.sql
BEGIN IMMEDIATE;
-- What an operator asks for first: the tasks that failed lately.
CREATE INDEX task_failed ON task (terminal, tool) WHERE outcome = 2 OR is_error;
INSERT INTO schema_version VALUES (7);
COMMIT;

INSERT INTO worker VALUES (x'776f726b6572', 1795938196566673);
INSERT INTO account VALUES (x'61', 2, 0, 2431);
INSERT INTO account VALUES (x'6170', 1, 1, 163);
INSERT INTO account VALUES (x'6170ff', 1, 1, 388);
INSERT INTO account VALUES (x'6e', 2, 0, 2431);
INSERT INTO account VALUES (x'73', 4, 2, 2982);
INSERT INTO task VALUES (65536, x'66756c6c', 1, x'70ff', x'70ff', x'72756e', x'6b6579', 2, 0, 0, 1, x'61736b73', 1.5, 4, 1795348800000123, 1795348801000123, -9223372036854775808, 4951022400000123, 2, 1, x'776f726b6572', 388, 1, x'010a323032352d31312d3235046e616d650112656c696369746174696f6e2f6372656174650080a8d6b9071230302d312d322d30310a76656e646f723d78', x'7b20226e223a2031207d', NULL, x'', x'', 0, 0);
INSERT INTO task VALUES (131072, x'646f6e65', 1, x'', x'', x'72756e', NULL, 9, 1, 0, 0, x'', 0, 0, 1795348802000123, 1795348803000123, 1795348803000123, 4951022402000123, 0, 0, x'', 2411, 0, x'01000000000000', NULL, NULL, x'', x'', 0, 0);
INSERT INTO task VALUES (196608, x'6661696c6564', 1, x'', x'', x'72756e', NULL, 9, 2, 0, 0, x'', 0, 0, 1795348804000123, 1795348803000123, 1795348803000123, 4951022402000123, 0, 0, x'', 20, 0, x'01000000000000', NULL, x'010001b5fd030b776f726b6572206c6f737400', x'', x'', 0, 0);
INSERT INTO task VALUES (262144, x'73746570706564', 2, x'70', x'70', x'72756e', NULL, 1, 0, 0, 0, x'', 0, 0, 1795867200000123, 1795867200000123, -9223372036854775808, 4951540800000123, 0, 0, x'', 163, 0, x'01000000000000', NULL, NULL, x'', x'', 151, 60000000001);
INSERT INTO arguments VALUES (131072, x'226c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e6722');
INSERT INTO inputs VALUES (65536, x'0102047374657012656c696369746174696f6e2f637265617465107b226d657373616765223a223f227d037b7d0b6f75747374616e64696e67000000067374657023320a726f6f74732f6c697374000008616e737765726564000101026e6f023100');
INSERT INTO outcome VALUES (131072, x'01b309226c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e676c6f6e672200');
INSERT INTO step VALUES (262144, x'726f77', x'0108706f736974696f6ef8c1a8a89dd5b006040237');
INSERT INTO step VALUES (262144, x'7570006c6f6164ff', x'0104646f6e65f6c1a8a89dd5b006020c207b226e223a20312e307d');
INSERT INTO change VALUES (1, x'0101000466756c6c020e696e7075745f7265717569726564');
INSERT INTO change VALUES (2, x'01010004646f6e650204646f6e65');
INSERT INTO change VALUES (3, x'010100066661696c65640204646f6e65');
INSERT INTO change VALUES (4, x'0101010773746570706564020772756e6e696e67');
INSERT INTO change VALUES (5, x'0101010773746570706564040772756e6e696e67');
INSERT INTO tombstone VALUES (CAST('expired' AS BLOB), CAST('q' AS BLOB), 9000000000000000);
