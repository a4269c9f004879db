-- The journal, the trials and the artifacts. Nothing here is ever changed or taken away: what is
-- known of a case is derived from its entries, and triggers refuse whoever tries otherwise.
-- Bodies are JSON as domain/written.py writes it; the columns beside them are there to find rows.

-- One row per case; `name` is what people type.
CREATE TABLE cases (
    number  INTEGER PRIMARY KEY,
    name    TEXT NOT NULL UNIQUE,
    at      REAL NOT NULL           -- seconds since the epoch
);

-- Entries of a case in their order; `seq` counts from 1 without a gap.
CREATE TABLE events (
    case_number  INTEGER NOT NULL REFERENCES cases (number),
    seq          INTEGER NOT NULL,
    at           REAL NOT NULL,
    body         TEXT NOT NULL,
    PRIMARY KEY (case_number, seq)
);

-- A trial has one place in one search: the key is what makes a resumed search a replay.
CREATE TABLE trials (
    case_number  INTEGER NOT NULL REFERENCES cases (number),
    search       TEXT NOT NULL,
    step         INTEGER NOT NULL,
    condition    TEXT NOT NULL,
    repeat       INTEGER NOT NULL,
    at           REAL NOT NULL,
    body         TEXT NOT NULL,
    PRIMARY KEY (case_number, search, step, condition, repeat)
);

-- Bytes by content. `digest` is of the bytes as given, before packing.
CREATE TABLE artifacts (
    digest   TEXT NOT NULL PRIMARY KEY,
    size     INTEGER NOT NULL,      -- bytes before packing
    packing  TEXT NOT NULL CHECK (packing IN ('none', 'zstd')),
    body     BLOB NOT NULL
);

CREATE TRIGGER cases_stay BEFORE UPDATE ON cases
BEGIN SELECT RAISE(ABORT, 'cases are append-only'); END;
CREATE TRIGGER cases_remain BEFORE DELETE ON cases
BEGIN SELECT RAISE(ABORT, 'cases are append-only'); END;

CREATE TRIGGER events_stay BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER events_remain BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;

CREATE TRIGGER trials_stay BEFORE UPDATE ON trials
BEGIN SELECT RAISE(ABORT, 'trials are append-only'); END;
CREATE TRIGGER trials_remain BEFORE DELETE ON trials
BEGIN SELECT RAISE(ABORT, 'trials are append-only'); END;
