-- Ranks with a limit: the best rows of each partition; of the others none is read.
CREATE TABLE laps (id INT PRIMARY KEY, driver STRING, seconds INT);

CREATE MATERIALIZED VIEW best_laps AS
SELECT driver, id, seconds FROM laps QUALIFY row_number() OVER (PARTITION BY driver ORDER BY seconds) = 1;
-- view of driver, id, seconds, key id [n2, incremental]
--   row_number to 1 by laps.driver order by laps.seconds [n1, incremental]
--     upsert by id [n0, incremental]
--       table laps

CREATE MATERIALIZED VIEW podium_laps AS
SELECT id, place FROM (SELECT id, rank() OVER (ORDER BY seconds) AS place FROM laps) WHERE place <= 2;
-- view of id, place, key id [n2, incremental]
--   rank to 2 order by laps.seconds [n1, incremental]
--     upsert by id [n0, incremental]
--       table laps

-- epoch: of equal rows the first by its columns is the best, and equal rows have equal ranks
-- > laps +1 [3, "ann", 60]
-- > laps +1 [2, "ann", 60]
-- > laps +1 [1, "bob", 70]
-- < best_laps +1 ["ann", 2, 60]
-- < best_laps +1 ["bob", 1, 70]
-- < podium_laps +1 [2, 1]
-- < podium_laps +1 [3, 1]

-- epoch: a better one
-- > laps +1 [4, "bob", 50]
-- < best_laps -1 ["bob", 1, 70]
-- < best_laps +1 ["bob", 4, 50]
-- < podium_laps -1 [2, 1]
-- < podium_laps +1 [2, 2]
-- < podium_laps -1 [3, 1]
-- < podium_laps +1 [3, 2]
-- < podium_laps +1 [4, 1]

-- epoch: it goes, and the next is back
-- > laps -1 [4]
-- < best_laps +1 ["bob", 1, 70]
-- < best_laps -1 ["bob", 4, 50]
-- < podium_laps +1 [2, 1]
-- < podium_laps -1 [2, 2]
-- < podium_laps +1 [3, 1]
-- < podium_laps -1 [3, 2]
-- < podium_laps -1 [4, 1]

-- epoch: one of the equal ones goes
-- > laps -1 [2]
-- < best_laps -1 ["ann", 2, 60]
-- < best_laps +1 ["ann", 3, 60]
-- < podium_laps +1 [1, 2]
-- < podium_laps -1 [2, 1]
