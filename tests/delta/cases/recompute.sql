-- Recomputed views: the difference between the old result and the new one comes out.
CREATE TABLE scores (player STRING PRIMARY KEY, team STRING, points INT);

CREATE MATERIALIZED VIEW ranks AS
SELECT player, rank() OVER (ORDER BY points DESC) AS place FROM scores;
-- view of player, place [n0]
--   recomputed: a window function (rank)
--     table scores

CREATE MATERIALIZED VIEW podium AS
SELECT player, points FROM scores ORDER BY points DESC, player LIMIT 2;
-- view of player, points [n0]
--   recomputed: ORDER BY ... LIMIT
--     table scores

CREATE MATERIALIZED VIEW teams AS
SELECT count(DISTINCT team) AS n, max(points) AS best FROM scores;
-- view of n, best [n0]
--   recomputed: count(DISTINCT ...)
--     table scores

CREATE MATERIALIZED VIEW places AS
SELECT place, count(*) AS n FROM ranks GROUP BY place;
-- view of place, n, key place [n1]
--   aggregate count(1) by place [n0]
--     view ranks

-- epoch: the whole result
-- > scores +1 ["ann", "red", 10]
-- > scores +1 ["bob", "red", 7]
-- > scores +1 ["cy", "blue", 7]
-- < ranks +1 ["ann", 1]
-- < ranks +1 ["bob", 2]
-- < ranks +1 ["cy", 2]
-- < podium +1 ["ann", 10]
-- < podium +1 ["bob", 7]
-- < teams +1 [2, 10]
-- < places +1 [1, 1]
-- < places +1 [2, 2]

-- epoch: one change, and only the ranks that move
-- > scores +1 ["cy", "blue", 8]
-- < ranks -1 ["bob", 2]
-- < ranks +1 ["bob", 3]
-- < podium -1 ["bob", 7]
-- < podium +1 ["cy", 8]
-- < places +1 [2, 1]
-- < places -1 [2, 2]
-- < places +1 [3, 1]

-- epoch: the best goes
-- > scores -1 ["ann"]
-- < ranks -1 ["ann", 1]
-- < ranks +1 ["bob", 2]
-- < ranks -1 ["bob", 3]
-- < ranks +1 ["cy", 1]
-- < ranks -1 ["cy", 2]
-- < podium -1 ["ann", 10]
-- < podium +1 ["bob", 7]
-- < teams -1 [2, 10]
-- < teams +1 [2, 8]
-- < places -1 [3, 1]
