-- Scalar subqueries: a value that every row is joined with.
CREATE TABLE wages (id INT PRIMARY KEY, office STRING, wage INT);

CREATE MATERIALIZED VIEW above_average AS
SELECT id FROM wages WHERE wage > (SELECT avg(wage) FROM wages);
-- view of id, key id [n3, incremental]
--   filter ((wages.wage IS NOT NULL) AND (CAST(wages.wage AS DOUBLE) > `avg(wage)`))
--     join of every row with every row [n2, incremental]
--       upsert by id [n0, incremental]
--         table wages
--       aggregate avg(wages.wage) [n1, incremental]
--         upsert by id [n0, incremental]
--           table wages

CREATE MATERIALIZED VIEW colleagues AS
SELECT id, (SELECT count(*) FROM wages o WHERE o.office = w.office AND o.id <> w.id) AS n FROM wages w;
-- view of id, n, key id [n6, incremental]
--   compute n
--     left join on (w.id <=> w.id) and (o.office = w.office) [n4, incremental]
--       upsert by id [n0, incremental]
--         table wages
--       compute alwaysTrue
--         aggregate count(1) by id, office [n3, incremental]
--           join on (NOT (o.id = w.id)) [n2, incremental]
--             distinct id [n1, incremental]
--               filter (w.id IS NOT NULL)
--                 upsert by id [n0, incremental]
--                   table wages
--             filter ((o.id IS NOT NULL) AND (o.office IS NOT NULL))
--               upsert by id [n0, incremental]
--                 table wages

CREATE MATERIALIZED VIEW below_the_best AS
SELECT office, (SELECT max(wage) FROM wages) - max(wage) AS less FROM wages GROUP BY office;
-- view of office, less, key office [n4, incremental]
--   compute less
--     join of every row with every row [n3, incremental]
--       aggregate max(wages.wage) by office [n1, incremental]
--         upsert by id [n0, incremental]
--           table wages
--       aggregate max(wages.wage) [n2, incremental]
--         upsert by id [n0, incremental]
--           table wages

-- epoch: the average is 30
-- > wages +1 [1, "Bern", 20]
-- > wages +1 [2, "Bern", 40]
-- < above_average +1 [2]
-- < colleagues +1 [1, 1]
-- < colleagues +1 [2, 1]
-- < below_the_best +1 ["Bern", 0]

-- epoch: a new average moves a row that nobody changed
-- > wages +1 [3, "Rome", 90]
-- < above_average -1 [2]
-- < above_average +1 [3]
-- < colleagues +1 [3, 0]
-- < below_the_best -1 ["Bern", 0]
-- < below_the_best +1 ["Bern", 50]
-- < below_the_best +1 ["Rome", 0]

-- epoch: and back
-- > wages -1 [3]
-- < above_average +1 [2]
-- < above_average -1 [3]
-- < colleagues -1 [3, 0]
-- < below_the_best +1 ["Bern", 0]
-- < below_the_best -1 ["Bern", 50]
-- < below_the_best -1 ["Rome", 0]
