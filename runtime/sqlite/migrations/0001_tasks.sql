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
