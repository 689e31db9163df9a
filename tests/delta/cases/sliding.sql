-- Windows that slide by an order: the rows around what changed, through Spark's own operator.
CREATE STREAM pings (id INT, phone STRING, at TIMESTAMP);
CREATE TABLE tariffs (id INT PRIMARY KEY, shop STRING, cents INT);

CREATE MATERIALIZED VIEW last_minutes AS
SELECT id, phone, count(*) OVER (PARTITION BY phone ORDER BY at RANGE BETWEEN INTERVAL 5 MINUTES PRECEDING AND CURRENT ROW) AS pings
FROM pings;
-- view of id, phone, pings [n2, incremental]
--   window count(1) by pings.phone, sliding by pings.at [n1, incremental]
--     stream pings

CREATE MATERIALIZED VIEW alike AS
SELECT id, shop, count(*) OVER (PARTITION BY shop ORDER BY cents RANGE BETWEEN 10 PRECEDING AND 10 FOLLOWING) - 1 AS others,
  min(cents) OVER (PARTITION BY shop ORDER BY cents RANGE BETWEEN 10 PRECEDING AND CURRENT ROW) AS least
FROM tariffs;
-- view of id, shop, others, least, key id [n3, incremental]
--   compute others
--     window count(1), min(tariffs.cents) by tariffs.shop, sliding by tariffs.cents [n2, incremental]
--       upsert by id [n0, incremental]
--         table tariffs

CREATE MATERIALIZED VIEW within_reach AS
SELECT id, sum(cents) OVER (ORDER BY id RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS cents FROM tariffs;
-- view of id, cents, key id [n3, incremental]
--   window sum(tariffs.cents), sliding by tariffs.id [n2, incremental]
--     upsert by id [n0, incremental]
--       table tariffs

-- epoch: some pings and tariffs
-- > pings +1 [1, "ann", "2026-05-04T10:03:39Z"]
-- > pings +1 [2, "ann", "2026-05-04T10:08:12Z"]
-- > pings +1 [3, "bob", "2026-05-04T10:08:12Z"]
-- > pings +1 [4, "ann", "2026-05-04T10:13:12Z"]
-- > tariffs +1 [1, "x", 100]
-- > tariffs +1 [2, "x", 110]
-- > tariffs +1 [3, "x", 121]
-- > tariffs +1 [4, "y", 105]
-- < last_minutes +1 [1, "ann", 1]
-- < last_minutes +1 [2, "ann", 2]
-- < last_minutes +1 [3, "bob", 1]
-- < last_minutes +1 [4, "ann", 2]
-- < alike +1 [1, "x", 1, 100]
-- < alike +1 [2, "x", 1, 100]
-- < alike +1 [3, "x", 0, 121]
-- < alike +1 [4, "y", 0, 105]
-- < within_reach +1 [1, 210]
-- < within_reach +1 [2, 331]
-- < within_reach +1 [3, 336]
-- < within_reach +1 [4, 226]

-- epoch: a late ping is felt for five minutes, and a tariff by its neighbours
-- > pings +1 [5, "ann", "2026-05-04T10:08:00Z"]
-- > tariffs +1 [5, "x", 111]
-- < last_minutes -1 [2, "ann", 2]
-- < last_minutes +1 [2, "ann", 3]
-- < last_minutes +1 [5, "ann", 2]
-- < alike -1 [2, "x", 1, 100]
-- < alike +1 [2, "x", 2, 100]
-- < alike -1 [3, "x", 0, 121]
-- < alike +1 [3, "x", 1, 111]
-- < alike +1 [5, "x", 2, 110]
-- < within_reach -1 [4, 226]
-- < within_reach +1 [4, 337]
-- < within_reach +1 [5, 216]

-- epoch: a tariff that moves is missed where it was
-- > tariffs +1 [2, "x", 150]
-- < alike +1 [1, "x", 0, 100]
-- < alike -1 [1, "x", 1, 100]
-- < alike +1 [2, "x", 0, 150]
-- < alike -1 [2, "x", 2, 100]
-- < alike +1 [5, "x", 1, 111]
-- < alike -1 [5, "x", 2, 110]
-- < within_reach -1 [1, 210]
-- < within_reach +1 [1, 250]
-- < within_reach -1 [2, 331]
-- < within_reach +1 [2, 371]
-- < within_reach -1 [3, 336]
-- < within_reach +1 [3, 376]

-- epoch: pings without a time are near each other, and to nothing else
-- > pings +1 [6, "ann", null]
-- > pings +1 [7, "ann", null]
-- > tariffs -1 [5]
-- < last_minutes +1 [6, "ann", 2]
-- < last_minutes +1 [7, "ann", 2]
-- < alike +1 [3, "x", 0, 121]
-- < alike -1 [3, "x", 1, 111]
-- < alike -1 [5, "x", 1, 111]
-- < within_reach +1 [4, 226]
-- < within_reach -1 [4, 337]
-- < within_reach -1 [5, 216]
