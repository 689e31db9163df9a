-- Window functions: all rows of the partitions that changed, through Spark's own operator.
CREATE TABLE transfers (id INT PRIMARY KEY, account STRING, amount INT);

CREATE MATERIALIZED VIEW balances AS
SELECT id, account, sum(amount) OVER (PARTITION BY account ORDER BY id) AS balance FROM transfers;
-- view of id, account, balance, key id [n3, incremental]
--   window sum(transfers.amount) by transfers.account [n2, per key]
--     upsert by id [n0, incremental]
--       table transfers

CREATE MATERIALIZED VIEW steps AS
SELECT id, amount - lag(amount) OVER (PARTITION BY account ORDER BY id) AS step,
  count(*) OVER (PARTITION BY amount) AS alike
FROM transfers;
-- view of id, step, alike, key id [n5, incremental]
--   compute step
--     window count(1) by transfers.amount [n4, per key]
--       window lag(transfers.amount, 1, NULL) by transfers.account [n2, per key]
--         upsert by id [n0, incremental]
--           table transfers

CREATE MATERIALIZED VIEW shares_of_all AS
SELECT id, amount * 100 div sum(amount) OVER () AS percent FROM transfers;
-- view of id, percent, key id [n3, incremental]
--   compute percent
--     window sum(transfers.amount) [n2, whole]
--       upsert by id [n0, incremental]
--         table transfers

-- epoch: two accounts
-- > transfers +1 [1, "a", 10]
-- > transfers +1 [2, "b", 30]
-- > transfers +1 [3, "a", 10]
-- < balances +1 [1, "a", 10]
-- < balances +1 [2, "b", 30]
-- < balances +1 [3, "a", 20]
-- < steps +1 [1, null, 2]
-- < steps +1 [2, null, 1]
-- < steps +1 [3, 0, 2]
-- < shares_of_all +1 [1, 20]
-- < shares_of_all +1 [2, 60]
-- < shares_of_all +1 [3, 20]

-- epoch: a transfer in the middle moves those behind it, in its account only
-- > transfers +1 [2, "a", 30]
-- < balances +1 [2, "a", 40]
-- < balances -1 [2, "b", 30]
-- < balances -1 [3, "a", 20]
-- < balances +1 [3, "a", 50]
-- < steps +1 [2, 20, 1]
-- < steps -1 [2, null, 1]
-- < steps +1 [3, -20, 2]
-- < steps -1 [3, 0, 2]

-- epoch: a row that is computed again and stays as it is, is not told
-- > transfers -1 [3]
-- < balances -1 [3, "a", 50]
-- < steps +1 [1, null, 1]
-- < steps -1 [1, null, 2]
-- < steps -1 [3, -20, 2]
-- < shares_of_all -1 [1, 20]
-- < shares_of_all +1 [1, 25]
-- < shares_of_all -1 [2, 60]
-- < shares_of_all +1 [2, 75]
-- < shares_of_all -1 [3, 20]
