-- Aggregate: sums and counts by group, kept as accumulators.
CREATE TABLE payments (id INT PRIMARY KEY, country STRING, amount DECIMAL(10,2), weight DOUBLE);

CREATE MATERIALIZED VIEW payments_by_country AS
SELECT country, count(*) AS n, count(amount) AS amounts, sum(amount) AS total, avg(amount) AS mean
FROM payments GROUP BY country;
-- view of country, n, amounts, total, mean, key country [n2, incremental]
--   aggregate count(1), count(payments.amount), sum(payments.amount), avg(payments.amount) by country [n1, incremental]
--     upsert by id [n0, incremental]
--       table payments

CREATE MATERIALIZED VIEW payments_in_all AS
SELECT count(*) AS n, sum(weight) AS weight FROM payments;
-- view of n, weight [n2, incremental]
--   aggregate count(1), sum(payments.weight) [n1, incremental]
--     upsert by id [n0, incremental]
--       table payments

CREATE MATERIALIZED VIEW payments_filtered AS
SELECT country, count(*) FILTER (WHERE amount > 5) AS large, sum(amount) FILTER (WHERE weight > 0) AS heavy
FROM payments GROUP BY country HAVING count(*) > 1;
-- view of country, large, heavy, key country [n2, incremental]
--   filter (`count(1)` > 1L)
--     aggregate count(1) FILTER (WHERE (payments.amount > 5.00BD)), sum(payments.amount) FILTER (WHERE (payments.weight > 0.0D)), count(1) by country [n1, incremental]
--       upsert by id [n0, incremental]
--         table payments

CREATE MATERIALIZED VIEW payments_by_weight AS
SELECT weight, count(*) AS n FROM payments GROUP BY weight;
-- view of weight, n, key weight [n2, incremental]
--   aggregate count(1) by weight [n1, incremental]
--     upsert by id [n0, incremental]
--       table payments

-- epoch: NULL is a group, and a sum of nothing but NULL is NULL; one total is there though no row is
-- > payments +1 [1, "CH", "19.90", 1.5]
-- > payments +1 [2, null, null, NaN]
-- < payments_by_country +1 ["CH", 1, 1, "19.90", "19.900000"]
-- < payments_by_country +1 [null, 1, 0, null, null]
-- < payments_in_all +1 [2, NaN]
-- < payments_by_weight +1 [1.5, 1]
-- < payments_by_weight +1 [NaN, 1]

-- epoch: -0.0 and 0.0 are one group
-- > payments +1 [3, "CH", "0.10", -0.0]
-- > payments +1 [4, "DE", "7.00", 0.0]
-- < payments_by_country -1 ["CH", 1, 1, "19.90", "19.900000"]
-- < payments_by_country +1 ["CH", 2, 2, "20.00", "10.000000"]
-- < payments_by_country +1 ["DE", 1, 1, "7.00", "7.000000"]
-- < payments_in_all -1 [2, NaN]
-- < payments_in_all +1 [4, NaN]
-- < payments_filtered +1 ["CH", 1, "19.90"]
-- < payments_by_weight +1 [0.0, 2]

-- epoch: a row moves to another group; NaN leaves the sum as it came
-- > payments +1 [3, "DE", "0.10", -0.0]
-- > payments -1 [2]
-- < payments_by_country +1 ["CH", 1, 1, "19.90", "19.900000"]
-- < payments_by_country -1 ["CH", 2, 2, "20.00", "10.000000"]
-- < payments_by_country -1 ["DE", 1, 1, "7.00", "7.000000"]
-- < payments_by_country +1 ["DE", 2, 2, "7.10", "3.550000"]
-- < payments_by_country -1 [null, 1, 0, null, null]
-- < payments_in_all +1 [3, 1.5]
-- < payments_in_all -1 [4, NaN]
-- < payments_filtered -1 ["CH", 1, "19.90"]
-- < payments_filtered +1 ["DE", 1, null]
-- < payments_by_weight -1 [NaN, 1]

-- epoch: a change that nothing sums is not told
-- > payments +1 [4, "DE", "7.00", 0.0]

-- epoch: everything goes, the total stays
-- > payments -1 [1]
-- > payments -1 [3]
-- > payments -1 [4]
-- < payments_by_country -1 ["CH", 1, 1, "19.90", "19.900000"]
-- < payments_by_country -1 ["DE", 2, 2, "7.10", "3.550000"]
-- < payments_in_all +1 [0, null]
-- < payments_in_all -1 [3, 1.5]
-- < payments_filtered -1 ["DE", 1, null]
-- < payments_by_weight -1 [0.0, 2]
-- < payments_by_weight -1 [1.5, 1]
