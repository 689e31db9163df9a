-- Versions: an event meets the row that a table had at its time.
CREATE STREAM invoices (id INT, country STRING, at TIMESTAMP);
CREATE TABLE taxes (country STRING PRIMARY KEY, percent INT, since TIMESTAMP) WITH (event_time = 'since');

CREATE MATERIALIZED VIEW taxed AS
SELECT i.id, t.percent, t._version AS version FROM invoices i
LEFT JOIN taxes FOR SYSTEM_TIME AS OF i.at AS t ON i.country = t.country;
-- view of id, percent, version [n3, incremental]
--   left join on (i.country = t.country) and (t._valid_from <= i.at) and ((t._valid_to IS NULL) OR (i.at < t._valid_to)) [n1, incremental]
--     stream invoices
--     filter ((t.country IS NOT NULL) AND (t._valid_from IS NOT NULL))
--       versions by country [n0, incremental]
--         table taxes

CREATE MATERIALIZED VIEW tax_history AS
SELECT * FROM `taxes.versions`;
-- view of country, percent, since, _version, _valid_from, _valid_to, key _version [n1, incremental]
--   versions by country [n0, incremental]
--     table taxes

-- epoch: an event at the begin of a version meets it, one before the first meets none
-- > taxes +1 ["CH", 7, "2026-01-01T00:00:00Z"]
-- > taxes +1 ["CH", 8, "2026-02-01T00:00:00Z"]
-- > invoices +1 [1, "CH", "2025-12-31T00:00:00Z"]
-- > invoices +1 [2, "CH", "2026-01-01T00:00:00Z"]
-- > invoices +1 [3, "CH", "2026-02-01T00:00:00Z"]
-- < taxed +1 [1, null, null]
-- < taxed +1 [2, 7, 0]
-- < taxed +1 [3, 8, 1]
-- < tax_history +1 ["CH", 7, "2026-01-01 00:00:00+00:00", 0, "2026-01-01 00:00:00+00:00", "2026-02-01 00:00:00+00:00"]
-- < tax_history +1 ["CH", 8, "2026-02-01 00:00:00+00:00", 1, "2026-02-01 00:00:00+00:00", null]

-- epoch: a version that comes late corrects what it is valid for, and ends where the next begins
-- > taxes +1 ["CH", 9, "2025-12-01T00:00:00Z"]
-- < taxed +1 [1, 9, 2]
-- < taxed -1 [1, null, null]
-- < tax_history +1 ["CH", 9, "2025-12-01 00:00:00+00:00", 2, "2025-12-01 00:00:00+00:00", "2026-01-01 00:00:00+00:00"]

-- epoch: of two versions of one time the last written is valid
-- > taxes +1 ["CH", 6, "2026-01-01T00:00:00Z"]
-- < taxed +1 [2, 6, 3]
-- < taxed -1 [2, 7, 0]
-- < tax_history +1 ["CH", 6, "2026-01-01 00:00:00+00:00", 3, "2026-01-01 00:00:00+00:00", "2026-02-01 00:00:00+00:00"]
-- < tax_history -1 ["CH", 7, "2026-01-01 00:00:00+00:00", 0, "2026-01-01 00:00:00+00:00", "2026-02-01 00:00:00+00:00"]

-- epoch: a version that says the same is another one
-- > taxes +1 ["CH", 8, "2026-01-15T00:00:00Z"]
-- > invoices +1 [4, "CH", "2026-01-20T00:00:00Z"]
-- < taxed +1 [4, 8, 4]
-- < tax_history +1 ["CH", 6, "2026-01-01 00:00:00+00:00", 3, "2026-01-01 00:00:00+00:00", "2026-01-15 00:00:00+00:00"]
-- < tax_history -1 ["CH", 6, "2026-01-01 00:00:00+00:00", 3, "2026-01-01 00:00:00+00:00", "2026-02-01 00:00:00+00:00"]
-- < tax_history +1 ["CH", 8, "2026-01-15 00:00:00+00:00", 4, "2026-01-15 00:00:00+00:00", "2026-02-01 00:00:00+00:00"]

-- epoch: an event without a time meets none
-- > invoices +1 [5, "CH", null]
-- < taxed +1 [5, null, null]
