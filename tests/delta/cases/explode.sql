-- Explode: one row for every element, with or without a row for none.
CREATE TABLE baskets (id INT PRIMARY KEY, items ARRAY<STRING>, prices MAP<STRING, INT>);

CREATE MATERIALIZED VIEW basket_items AS
SELECT id, item FROM baskets LATERAL VIEW explode(items) AS item;
-- view of id, item [n1, incremental]
--   explode into item
--     filter ((size(baskets.items) > 0) AND (baskets.items IS NOT NULL))
--       upsert by id [n0, incremental]
--         table baskets

CREATE MATERIALIZED VIEW basket_places AS
SELECT id, place, item FROM baskets LATERAL VIEW OUTER posexplode(items) AS place, item;
-- view of id, place, item [n1, incremental]
--   explode into place, item
--     upsert by id [n0, incremental]
--       table baskets

CREATE MATERIALIZED VIEW basket_prices AS
SELECT id, item, price FROM baskets LATERAL VIEW explode(prices) AS item, price WHERE price > 1;
-- view of id, item, price [n1, incremental]
--   filter ((as.price IS NOT NULL) AND (as.price > 1))
--     explode into item, price
--       filter ((size(baskets.prices) > 0) AND (baskets.prices IS NOT NULL))
--         upsert by id [n0, incremental]
--           table baskets

CREATE MATERIALIZED VIEW basket_pairs AS
SELECT id, name, n FROM baskets
LATERAL VIEW inline(array(struct('items', size(items)), struct('prices', size(prices)))) AS name, n;
-- view of id, name, n [n1, incremental]
--   explode into name, n
--     upsert by id [n0, incremental]
--       table baskets

-- epoch: OUTER keeps rows whose array is empty or NULL
-- > baskets +1 [1, ["a", "b", "a"], {"a": 1, "b": 2}]
-- > baskets +1 [2, [], {}]
-- > baskets +1 [3, null, null]
-- < basket_items +2 [1, "a"]
-- < basket_items +1 [1, "b"]
-- < basket_places +1 [1, 0, "a"]
-- < basket_places +1 [1, 1, "b"]
-- < basket_places +1 [1, 2, "a"]
-- < basket_places +1 [2, null, null]
-- < basket_places +1 [3, null, null]
-- < basket_prices +1 [1, "b", 2]
-- < basket_pairs +1 [1, "items", 3]
-- < basket_pairs +1 [1, "prices", 2]
-- < basket_pairs +1 [2, "items", 0]
-- < basket_pairs +1 [2, "prices", 0]
-- < basket_pairs +1 [3, "items", null]
-- < basket_pairs +1 [3, "prices", null]

-- epoch: elements that stay do not come out again; those at another place do where the place counts
-- > baskets +1 [1, ["b", "a"], {"b": 2, "c": 3}]
-- > baskets +1 [2, [null], {}]
-- > baskets -1 [3]
-- < basket_items -1 [1, "a"]
-- < basket_items +1 [2, null]
-- < basket_places -1 [1, 0, "a"]
-- < basket_places +1 [1, 0, "b"]
-- < basket_places +1 [1, 1, "a"]
-- < basket_places -1 [1, 1, "b"]
-- < basket_places -1 [1, 2, "a"]
-- < basket_places +1 [2, 0, null]
-- < basket_places -1 [2, null, null]
-- < basket_places -1 [3, null, null]
-- < basket_prices +1 [1, "c", 3]
-- < basket_pairs +1 [1, "items", 2]
-- < basket_pairs -1 [1, "items", 3]
-- < basket_pairs -1 [2, "items", 0]
-- < basket_pairs +1 [2, "items", 1]
-- < basket_pairs -1 [3, "items", null]
-- < basket_pairs -1 [3, "prices", null]
