-- Filter and project: rows on their own, no state but the view's rows.
CREATE STREAM orders (id INT, amount INT, note STRING);

CREATE MATERIALIZED VIEW large_orders AS
SELECT id, amount * 2 AS twice, upper(note) AS note FROM orders WHERE amount > 10;
-- view of id, twice, note [n0, incremental]
--   compute twice, note
--     filter ((orders.amount IS NOT NULL) AND (orders.amount > 10))
--       stream orders

CREATE MATERIALIZED VIEW shares_of_orders AS
SELECT id, 100 DIV amount AS share FROM orders WHERE amount <> 0;
-- view of id, share [n0, incremental]
--   compute share
--     filter ((orders.amount IS NOT NULL) AND (NOT (orders.amount = 0)))
--       stream orders

CREATE MATERIALIZED VIEW sized_orders AS
SELECT CASE WHEN amount > 10 THEN 'large' WHEN amount IS NULL THEN 'none' ELSE 'small' END AS size FROM orders;
-- view of size [n0, incremental]
--   compute size
--     stream orders

-- epoch: rows that the filter drops, also for NULL, do not come out
-- > orders +1 [1, 20, "a"]
-- > orders +1 [2, 5, "b"]
-- > orders +1 [3, null, "c"]
-- < large_orders +1 [1, 40, "A"]
-- < shares_of_orders +1 [1, 5]
-- < shares_of_orders +1 [2, 20]
-- < sized_orders +1 ["large"]
-- < sized_orders +1 ["none"]
-- < sized_orders +1 ["small"]

-- epoch: nothing above a filter is computed for rows that it drops: no division by zero
-- > orders +1 [4, 0, null]
-- < sized_orders +1 ["small"]

-- epoch: equal rows count
-- > orders +2 [1, 20, "a"]
-- < large_orders +2 [1, 40, "A"]
-- < shares_of_orders +2 [1, 5]
-- < sized_orders +2 ["large"]
