-- Existence joins: whether there is a match is a value like any other.
CREATE TABLE articles (id INT PRIMARY KEY, price INT);
CREATE TABLE deals (id INT PRIMARY KEY, article INT);

CREATE MATERIALIZED VIEW sold AS
SELECT id, id IN (SELECT article FROM deals WHERE article IS NOT NULL) AS sold FROM articles;
-- view of id, sold, key id [n3, incremental]
--   existence join on (articles.id = deals.article) [n2, incremental]
--     upsert by id [n0, incremental]
--       table articles
--     filter (deals.article IS NOT NULL)
--       upsert by id [n1, incremental]
--         table deals

CREATE MATERIALIZED VIEW cheap_or_sold AS
SELECT id FROM articles a WHERE price < 10 OR EXISTS (SELECT 1 FROM deals s WHERE s.article = a.id);
-- view of id, key id [n3, incremental]
--   filter ((a.price < 10) OR exists)
--     existence join on (s.article = a.id) [n2, incremental]
--       upsert by id [n0, incremental]
--         table articles
--       upsert by id [n1, incremental]
--         table deals

-- epoch: nothing is sold
-- > articles +1 [1, 5]
-- > articles +1 [2, 50]
-- < sold +1 [1, false]
-- < sold +1 [2, false]
-- < cheap_or_sold +1 [1]

-- epoch: two deals on one article
-- > deals +1 [7, 2]
-- > deals +1 [8, 2]
-- < sold -1 [2, false]
-- < sold +1 [2, true]
-- < cheap_or_sold +1 [2]

-- epoch: one of them is taken back, which changes nothing
-- > deals -1 [7]

-- epoch: the other too
-- > deals -1 [8]
-- < sold +1 [2, false]
-- < sold -1 [2, true]
-- < cheap_or_sold -1 [2]
