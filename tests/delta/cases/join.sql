-- Join: dL ⋈ R + L ⋈ dR + dL ⋈ dR.
CREATE STREAM bids (item INT, price INT);
CREATE TABLE items (id INT PRIMARY KEY, name STRING, reserve INT);

CREATE MATERIALIZED VIEW bids_with_items AS
SELECT name, price FROM bids JOIN items ON item = id;
-- view of name, price [n2, incremental]
--   join on (bids.item = items.id) [n1, incremental]
--     filter (bids.item IS NOT NULL)
--       stream bids
--     filter (items.id IS NOT NULL)
--       upsert by id [n0, incremental]
--         table items

CREATE MATERIALIZED VIEW good_bids AS
SELECT id, price FROM bids JOIN items ON item = id AND price >= reserve;
-- view of id, price [n2, incremental]
--   join on (bids.item = items.id) and (bids.price >= items.reserve) [n1, incremental]
--     filter ((bids.item IS NOT NULL) AND (bids.price IS NOT NULL))
--       stream bids
--     filter ((items.id IS NOT NULL) AND (items.reserve IS NOT NULL))
--       upsert by id [n0, incremental]
--         table items

CREATE MATERIALIZED VIEW null_safe_bids AS
SELECT item, price, name FROM bids JOIN items ON item <=> reserve;
-- view of item, price, name [n2, incremental]
--   join on (bids.item <=> items.reserve) [n1, incremental]
--     stream bids
--     upsert by id [n0, incremental]
--       table items

CREATE MATERIALIZED VIEW rival_bids AS
SELECT a.price AS low, b.price AS high FROM bids a JOIN bids b ON a.item = b.item AND a.price < b.price;
-- view of low, high [n1, incremental]
--   join on (a.item = b.item) and (a.price < b.price) [n0, incremental]
--     filter ((a.item IS NOT NULL) AND (a.price IS NOT NULL))
--       stream bids
--     filter ((b.item IS NOT NULL) AND (b.price IS NOT NULL))
--       stream bids

CREATE MATERIALIZED VIEW items_by_bids AS
SELECT name, price FROM items CROSS JOIN bids;
-- view of name, price [n2, incremental]
--   join of every row with every row [n1, incremental]
--     upsert by id [n0, incremental]
--       table items
--     stream bids

-- epoch: a bid without its item waits; NULL is equal to NULL for <=> only
-- > bids +1 [1, 10]
-- > bids +1 [null, 3]
-- > items +1 [2, "lamp", null]
-- < null_safe_bids +1 [null, 3, "lamp"]
-- < items_by_bids +1 ["lamp", 10]
-- < items_by_bids +1 ["lamp", 3]

-- epoch: both sides in one epoch
-- > bids +1 [1, 12]
-- > items +1 [1, "vase", 11]
-- < bids_with_items +1 ["vase", 10]
-- < bids_with_items +1 ["vase", 12]
-- < good_bids +1 [1, 12]
-- < rival_bids +1 [10, 12]
-- < items_by_bids +1 ["lamp", 12]
-- < items_by_bids +1 ["vase", 10]
-- < items_by_bids +1 ["vase", 12]
-- < items_by_bids +1 ["vase", 3]

-- epoch: equal bids count, and a change of the item changes every pair
-- > bids +1 [1, 12]
-- > items +1 [1, "urn", 13]
-- < bids_with_items +1 ["urn", 10]
-- < bids_with_items +2 ["urn", 12]
-- < bids_with_items -1 ["vase", 10]
-- < bids_with_items -1 ["vase", 12]
-- < good_bids -1 [1, 12]
-- < rival_bids +1 [10, 12]
-- < items_by_bids +1 ["lamp", 12]
-- < items_by_bids +1 ["urn", 10]
-- < items_by_bids +2 ["urn", 12]
-- < items_by_bids +1 ["urn", 3]
-- < items_by_bids -1 ["vase", 10]
-- < items_by_bids -1 ["vase", 12]
-- < items_by_bids -1 ["vase", 3]

-- epoch: the item goes and so do its pairs
-- > items -1 [1]
-- < bids_with_items -1 ["urn", 10]
-- < bids_with_items -2 ["urn", 12]
-- < items_by_bids -1 ["urn", 10]
-- < items_by_bids -2 ["urn", 12]
-- < items_by_bids -1 ["urn", 3]
