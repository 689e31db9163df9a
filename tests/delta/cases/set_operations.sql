-- INTERSECT and EXCEPT: as sets, and with ALL as multisets.
CREATE TABLE mornings (id INT PRIMARY KEY, name STRING);
CREATE TABLE evenings (id INT PRIMARY KEY, name STRING);

CREATE MATERIALIZED VIEW all_day AS
SELECT name FROM mornings INTERSECT SELECT name FROM evenings;
-- view of name, key name [n4, incremental]
--   distinct name [n3, incremental]
--     semi join on (mornings.name <=> evenings.name) [n2, incremental]
--       upsert by id [n0, incremental]
--         table mornings
--       upsert by id [n1, incremental]
--         table evenings

CREATE MATERIALIZED VIEW mornings_only AS
SELECT name FROM mornings EXCEPT SELECT name FROM evenings;
-- view of name, key name [n4, incremental]
--   distinct name [n3, incremental]
--     anti join on (mornings.name <=> evenings.name) [n2, incremental]
--       upsert by id [n0, incremental]
--         table mornings
--       upsert by id [n1, incremental]
--         table evenings

CREATE MATERIALIZED VIEW more_mornings AS
SELECT name FROM mornings EXCEPT ALL SELECT name FROM evenings;
-- view of name [n3, incremental]
--   explode into name
--     filter ((sum IS NOT NULL) AND (sum > 0L))
--       aggregate sum(vcol) by name [n2, incremental]
--         union all
--           compute vcol
--             upsert by id [n0, incremental]
--               table mornings
--           compute vcol
--             upsert by id [n1, incremental]
--               table evenings

-- epoch: ann works two mornings and one evening
-- > mornings +1 [1, "ann"]
-- > mornings +1 [2, "ann"]
-- > mornings +1 [3, null]
-- > evenings +1 [1, "ann"]
-- < all_day +1 ["ann"]
-- < mornings_only +1 [null]
-- < more_mornings +1 ["ann"]
-- < more_mornings +1 [null]

-- epoch: NULL is equal to NULL here
-- > evenings +1 [2, null]
-- < all_day +1 [null]
-- < mornings_only -1 [null]
-- < more_mornings -1 [null]

-- epoch: ann's evening goes
-- > evenings -1 [1]
-- < all_day -1 ["ann"]
-- < mornings_only +1 ["ann"]
-- < more_mornings +1 ["ann"]
