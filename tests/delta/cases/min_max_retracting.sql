-- Min and max over input that retracts: the ends of a group are kept in order, so the next one is known.
CREATE TABLE offers (id INT PRIMARY KEY, item STRING, price INT);

CREATE MATERIALIZED VIEW offers_between AS
SELECT item, min(price) AS lowest, max(price) AS highest FROM offers GROUP BY item;
-- view of item, lowest, highest, key item [n2, incremental]
--   aggregate min(offers.price), max(offers.price) by item [n1, incremental]
--     upsert by id [n0, incremental]
--       table offers

CREATE MATERIALIZED VIEW lowest_of_all AS
SELECT min(price) AS lowest, count(*) AS n FROM offers;
-- view of lowest, n [n2, incremental]
--   aggregate min(offers.price), count(1) [n1, incremental]
--     upsert by id [n0, incremental]
--       table offers

-- epoch: three offers
-- > offers +1 [1, "lamp", 30]
-- > offers +1 [2, "lamp", 20]
-- > offers +1 [3, "vase", null]
-- < offers_between +1 ["lamp", 20, 30]
-- < offers_between +1 ["vase", null, null]
-- < lowest_of_all +1 [20, 3]

-- epoch: the lowest goes, and the next is known
-- > offers -1 [2]
-- < offers_between -1 ["lamp", 20, 30]
-- < offers_between +1 ["lamp", 30, 30]
-- < lowest_of_all -1 [20, 3]
-- < lowest_of_all +1 [30, 2]

-- epoch: an equal one comes and goes unseen
-- > offers +1 [4, "lamp", 30]
-- > offers -1 [1]

-- epoch: one moves to another group
-- > offers +1 [4, "vase", 40]
-- < offers_between -1 ["lamp", 30, 30]
-- < offers_between +1 ["vase", 40, 40]
-- < offers_between -1 ["vase", null, null]
-- < lowest_of_all -1 [30, 2]
-- < lowest_of_all +1 [40, 2]
