-- Recomputed views: the difference between the old result and the new one comes out.
CREATE TABLE scores (player STRING PRIMARY KEY, team STRING, points INT);

CREATE MATERIALIZED VIEW ranks REFRESH POLICY FULL AS
SELECT player, rank() OVER (ORDER BY points DESC) AS place FROM scores;
-- view of player, place [n0, whole]
--   recomputed: REFRESH POLICY FULL
--     table scores

CREATE MATERIALIZED VIEW best_of_team REFRESH POLICY FULL AS
SELECT team, max(struct(points, player)) AS best FROM scores GROUP BY team;
-- view of team, best [n0, whole]
--   recomputed: REFRESH POLICY FULL
--     table scores

CREATE MATERIALIZED VIEW places AS
SELECT place, count(*) AS n FROM ranks GROUP BY place;
-- view of place, n, key place [n1, incremental]
--   aggregate count(1) by place [n0, incremental]
--     view ranks

-- epoch: the whole result
-- > scores +1 ["ann", "red", 10]
-- > scores +1 ["bob", "red", 7]
-- > scores +1 ["cy", "blue", 7]
-- < ranks +1 ["ann", 1]
-- < ranks +1 ["bob", 2]
-- < ranks +1 ["cy", 2]
-- < best_of_team +1 ["blue", {"points": 7, "player": "cy"}]
-- < best_of_team +1 ["red", {"points": 10, "player": "ann"}]
-- < places +1 [1, 1]
-- < places +1 [2, 2]

-- epoch: one change, and only the ranks that move
-- > scores +1 ["cy", "blue", 8]
-- < ranks -1 ["bob", 2]
-- < ranks +1 ["bob", 3]
-- < best_of_team -1 ["blue", {"points": 7, "player": "cy"}]
-- < best_of_team +1 ["blue", {"points": 8, "player": "cy"}]
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
-- < best_of_team -1 ["red", {"points": 10, "player": "ann"}]
-- < best_of_team +1 ["red", {"points": 7, "player": "bob"}]
-- < places -1 [3, 1]
