-- The secret with which servers sign session IDs.
CREATE TABLE @schema@.session_key (
  one    boolean NOT NULL PRIMARY KEY DEFAULT true CHECK (one),
  secret bytea   NOT NULL
);

-- The sessions that their clients have ended, until their IDs are void anyway.
CREATE TABLE @schema@.ended_session (
  principal bytea  NOT NULL,          -- its SHA-256: a principal may be longer than an index allows
  session   bytea  NOT NULL,
  until     bigint NOT NULL,
  PRIMARY KEY (principal, session)
);
CREATE INDEX ended_session_until ON @schema@.ended_session (until);
