-- Distinct aggregates: an aggregate over the distinct values of each group; several are joined by group.
CREATE TABLE calls (id INT PRIMARY KEY, caller STRING, called STRING, minutes INT);

CREATE MATERIALIZED VIEW people_called AS
SELECT caller, count(DISTINCT called) AS people FROM calls GROUP BY caller;
-- view of caller, people, key caller [n3, incremental]
--   aggregate count(DISTINCT calls.called) by caller [n2, incremental]
--     distinct caller, called [n1, incremental]
--       upsert by id [n0, incremental]
--         table calls

CREATE MATERIALIZED VIEW kinds_of_calls AS
SELECT count(*) AS n, count(DISTINCT caller, called) AS pairs,
  sum(DISTINCT minutes) FILTER (WHERE minutes > 1) AS long
FROM calls;
-- view of n, pairs, long [n8, incremental]
--   join of every row with every row [n7, incremental]
--     join of every row with every row [n4, incremental]
--       aggregate count(1) [n1, incremental]
--         upsert by id [n0, incremental]
--           table calls
--       aggregate count(DISTINCT calls.caller, calls.called) [n3, incremental]
--         distinct caller, called [n2, incremental]
--           upsert by id [n0, incremental]
--             table calls
--     aggregate sum(DISTINCT calls.minutes) FILTER (WHERE (calls.minutes > 1)) [n6, incremental]
--       distinct key [n5, incremental]
--         upsert by id [n0, incremental]
--           table calls

-- epoch: the same person twice counts once
-- > calls +1 [1, "ann", "bob", 3]
-- > calls +1 [2, "ann", "bob", 3]
-- > calls +1 [3, "ann", null, 1]
-- < people_called +1 ["ann", 1]
-- < kinds_of_calls +1 [3, 1, 3]

-- epoch: one of the two goes
-- > calls -1 [1]
-- < kinds_of_calls +1 [2, 1, 3]
-- < kinds_of_calls -1 [3, 1, 3]

-- epoch: the other too
-- > calls -1 [2]
-- < people_called +1 ["ann", 0]
-- < people_called -1 ["ann", 1]
-- < kinds_of_calls +1 [1, 0, null]
-- < kinds_of_calls -1 [2, 1, 3]
