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
