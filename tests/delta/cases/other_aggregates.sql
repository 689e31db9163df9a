-- Other aggregates: all rows of the groups that changed, through Spark's own operator.
CREATE TABLE times (id INT PRIMARY KEY, runner STRING, seconds INT);

CREATE MATERIALIZED VIEW medians AS
SELECT runner, median(seconds) AS median, collect_list(seconds) AS list FROM times GROUP BY runner;
-- view of runner, median, list, key runner [n3, incremental]
--   aggregate times.runner, percentile(times.seconds, 0.5D, 1L), collect_list(times.seconds) by times.runner [n2, per key]
--     upsert by id [n0, incremental]
--       table times

CREATE MATERIALIZED VIEW spread AS
SELECT percentile(seconds, 1) AS slowest, listagg(runner, ' ') WITHIN GROUP (ORDER BY id) AS runners FROM times;
-- view of slowest, runners [n3, incremental]
--   aggregate percentile(times.seconds, 1.0D, 1L), listagg(times.runner, ' ') WITHIN GROUP (ORDER BY times.id ASC NULLS FIRST) [n2, whole]
--     compute key
--       upsert by id [n0, incremental]
--         table times

CREATE MATERIALIZED VIEW by_runner AS
SELECT * FROM (SELECT runner, seconds FROM times) PIVOT (sum(seconds) FOR runner IN ('ann', 'bob'));
-- view of ann, bob [n4, incremental]
--   compute ann, bob
--     aggregate pivotfirst(__auto_generated_subquery_name.runner, `sum(__auto_generated_subquery_name.seconds)`) [n3, whole]
--       compute key
--         aggregate sum(__auto_generated_subquery_name.seconds) by runner [n1, incremental]
--           upsert by id [n0, incremental]
--             table times

-- epoch: a list is in the order of the rows' content, not in that of their coming
-- > times +1 [3, "ann", 60]
-- > times +1 [1, "ann", 70]
-- > times +1 [2, "bob", 50]
-- < medians +1 ["ann", 65.0, [60, 70]]
-- < medians +1 ["bob", 50.0, [50]]
-- < spread +1 [70.0, "ann bob ann"]
-- < by_runner +1 [130, 50]

-- epoch: only the group that changed is computed again
-- > times +1 [4, "ann", 65]
-- < medians +1 ["ann", 65.0, [60, 65, 70]]
-- < medians -1 ["ann", 65.0, [60, 70]]
-- < spread +1 [70.0, "ann bob ann ann"]
-- < spread -1 [70.0, "ann bob ann"]
-- < by_runner -1 [130, 50]
-- < by_runner +1 [195, 50]

-- epoch: a group that has no rows has no result; all rows together always have one
-- > times -1 [1]
-- > times -1 [2]
-- > times -1 [3]
-- > times -1 [4]
-- < medians -1 ["ann", 65.0, [60, 65, 70]]
-- < medians -1 ["bob", 50.0, [50]]
-- < spread -1 [70.0, "ann bob ann ann"]
-- < spread +1 [null, null]
-- < by_runner -1 [195, 50]
-- < by_runner +1 [null, null]
