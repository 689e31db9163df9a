-- NOT IN: a NULL may be equal to anything, so with one of them in the list nothing is surely outside of it.
CREATE TABLE guests (name STRING PRIMARY KEY, city STRING);
CREATE TABLE closed (id INT PRIMARY KEY, city STRING);

CREATE MATERIALIZED VIEW welcome AS
SELECT name FROM guests WHERE city NOT IN (SELECT city FROM closed);
-- view of name, key name [n5, incremental]
--   filter ((rows = CAST(0 AS BIGINT)) OR ((rows = values) AND ((guests.city IS NOT NULL) AND (NOT found))))
--     join of every row with every row [n4, incremental]
--       existence join on guests.city in closed.city [n2, incremental]
--         upsert by name [n0, incremental]
--           table guests
--         upsert by id [n1, incremental]
--           table closed
--       aggregate count(1), count(closed.city) [n3, incremental]
--         upsert by id [n1, incremental]
--           table closed

-- epoch: of an empty list everything is outside, NULL too
-- > guests +1 ["ann", "Bern"]
-- > guests +1 ["bob", "Rome"]
-- > guests +1 ["cy", null]
-- < welcome +1 ["ann"]
-- < welcome +1 ["bob"]
-- < welcome +1 ["cy"]

-- epoch: what is in the list goes, and NULL with it
-- > closed +1 [1, "Rome"]
-- < welcome -1 ["bob"]
-- < welcome -1 ["cy"]

-- epoch: a NULL in the list lets nobody in
-- > closed +1 [2, null]
-- < welcome -1 ["ann"]

-- epoch: without it everybody is back who was there
-- > closed -1 [2]
-- < welcome +1 ["ann"]

-- epoch: and with an empty list all are
-- > closed -1 [1]
-- < welcome +1 ["bob"]
-- < welcome +1 ["cy"]
