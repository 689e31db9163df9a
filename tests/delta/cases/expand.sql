-- Expand: every row once for each grouping set.
CREATE TABLE sales (id INT PRIMARY KEY, country STRING, city STRING, amount INT);

CREATE MATERIALIZED VIEW sales_rollup AS
SELECT country, city, sum(amount) AS amount, grouping(city) AS all_cities FROM sales GROUP BY ROLLUP (country, city);
-- view of country, city, amount, all_cities [n2, incremental]
--   compute all_cities
--     aggregate sum(sales.amount) by country, city, spark_grouping_id [n1, incremental]
--       expand into 3 rows
--         upsert by id [n0, incremental]
--           table sales

CREATE MATERIALIZED VIEW sales_sets AS
SELECT country, city, count(*) AS n FROM sales GROUP BY GROUPING SETS ((country), (city));
-- view of country, city, n [n2, incremental]
--   aggregate count(1) by country, city, spark_grouping_id [n1, incremental]
--     expand into 2 rows
--       upsert by id [n0, incremental]
--         table sales

-- epoch: a NULL in the data is not the NULL of a subtotal
-- > sales +1 [1, "CH", "Bern", 10]
-- > sales +1 [2, "CH", null, 5]
-- < sales_rollup +1 ["CH", "Bern", 10, 0]
-- < sales_rollup +1 ["CH", null, 15, 1]
-- < sales_rollup +1 ["CH", null, 5, 0]
-- < sales_rollup +1 [null, null, 15, 1]
-- < sales_sets +1 ["CH", null, 2]
-- < sales_sets +1 [null, "Bern", 1]
-- < sales_sets +1 [null, null, 1]

-- epoch: a sale moves to another city; the totals that do not change are not told again
-- > sales +1 [2, "CH", "Basel", 5]
-- < sales_rollup +1 ["CH", "Basel", 5, 0]
-- < sales_rollup -1 ["CH", null, 5, 0]
-- < sales_sets +1 [null, "Basel", 1]
-- < sales_sets -1 [null, null, 1]

-- epoch: the groups go with their last row
-- > sales -1 [1]
-- > sales -1 [2]
-- < sales_rollup -1 ["CH", "Basel", 5, 0]
-- < sales_rollup -1 ["CH", "Bern", 10, 0]
-- < sales_rollup -1 ["CH", null, 15, 1]
-- < sales_rollup -1 [null, null, 15, 1]
-- < sales_sets -1 ["CH", null, 2]
-- < sales_sets -1 [null, "Basel", 1]
-- < sales_sets -1 [null, "Bern", 1]
