-- ORDER BY with LIMIT and OFFSET: the first rows of all, kept in their order.
CREATE TABLE goods (id INT PRIMARY KEY, price INT);

CREATE MATERIALIZED VIEW dearest AS
SELECT id, price FROM goods ORDER BY price DESC LIMIT 2;
-- view of id, price, key id [n2, incremental]
--   order by goods.price desc limit 2 [n1, incremental]
--     upsert by id [n0, incremental]
--       table goods

CREATE MATERIALIZED VIEW all_but_the_dearest AS
SELECT id FROM goods ORDER BY price DESC OFFSET 1;
-- view of id, key id [n2, incremental]
--   order by goods.price desc offset 1 [n1, incremental]
--     upsert by id [n0, incremental]
--       table goods

CREATE MATERIALIZED VIEW any_good AS
SELECT id FROM goods LIMIT 1;
-- view of id, key id [n2, incremental]
--   limit 1 [n1, incremental]
--     upsert by id [n0, incremental]
--       table goods

-- epoch: equal prices are ordered by all columns; without an order these alone count
-- > goods +1 [3, 10]
-- > goods +1 [2, 10]
-- > goods +1 [4, 10]
-- < dearest +1 [2, 10]
-- < dearest +1 [3, 10]
-- < all_but_the_dearest +1 [3]
-- < all_but_the_dearest +1 [4]
-- < any_good +1 [2]

-- epoch: one above pushes the last one out
-- > goods +1 [9, 20]
-- < dearest -1 [3, 10]
-- < dearest +1 [9, 20]
-- < all_but_the_dearest +1 [2]

-- epoch: one below is not among the dearest, but it is the first by its columns
-- > goods +1 [1, 5]
-- < all_but_the_dearest +1 [1]
-- < any_good +1 [1]
-- < any_good -1 [2]

-- epoch: the first two go
-- > goods -1 [9]
-- > goods -1 [2]
-- < dearest -1 [2, 10]
-- < dearest +1 [3, 10]
-- < dearest +1 [4, 10]
-- < dearest -1 [9, 20]
-- < all_but_the_dearest -1 [2]
-- < all_but_the_dearest -1 [3]
