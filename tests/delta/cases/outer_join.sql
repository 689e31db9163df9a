-- Outer joins: the pairs, and each row without a match with NULLs beside it.
CREATE TABLE teams (id INT PRIMARY KEY, name STRING);
CREATE TABLE players (id INT PRIMARY KEY, team INT, goals INT);

CREATE MATERIALIZED VIEW teams_left AS
SELECT name, goals FROM teams LEFT JOIN players ON team = teams.id;
-- view of name, goals [n4, incremental]
--   left join on (players.team = teams.id) [n2, incremental]
--     upsert by id [n0, incremental]
--       table teams
--     filter (players.team IS NOT NULL)
--       upsert by id [n1, incremental]
--         table players

CREATE MATERIALIZED VIEW teams_full AS
SELECT name, players.id AS player FROM teams FULL JOIN players ON team = teams.id;
-- view of name, player [n5, incremental]
--   full join on (players.team = teams.id) [n2, incremental]
--     upsert by id [n0, incremental]
--       table teams
--     upsert by id [n1, incremental]
--       table players

CREATE MATERIALIZED VIEW scorers_right AS
SELECT players.id AS player, name FROM teams RIGHT JOIN players ON team = teams.id AND goals > 1;
-- view of player, name, key player [n5, incremental]
--   right join on (players.goals > 1) and (players.team = teams.id) [n2, incremental]
--     filter (teams.id IS NOT NULL)
--       upsert by id [n0, incremental]
--         table teams
--     upsert by id [n1, incremental]
--       table players

-- epoch: rows without a match have NULLs beside them
-- > teams +1 [1, "red"]
-- > players +1 [10, 2, 3]
-- > players +1 [11, null, 0]
-- < teams_left +1 ["red", null]
-- < teams_full +1 ["red", null]
-- < teams_full +1 [null, 10]
-- < teams_full +1 [null, 11]
-- < scorers_right +1 [10, null]
-- < scorers_right +1 [11, null]

-- epoch: a match comes, and the NULLs go
-- > teams +1 [2, "blue"]
-- > players +1 [12, 1, 1]
-- < teams_left +1 ["blue", 3]
-- < teams_left +1 ["red", 1]
-- < teams_left -1 ["red", null]
-- < teams_full +1 ["blue", 10]
-- < teams_full +1 ["red", 12]
-- < teams_full -1 ["red", null]
-- < teams_full -1 [null, 10]
-- < scorers_right +1 [10, "blue"]
-- < scorers_right -1 [10, null]
-- < scorers_right +1 [12, null]

-- epoch: the second match does nothing to what is without one
-- > players +1 [13, 1, 2]
-- < teams_left +1 ["red", 2]
-- < teams_full +1 ["red", 13]
-- < scorers_right +1 [13, "red"]

-- epoch: a row loses its only match
-- > players -1 [10]
-- > players +1 [13, 1, 1]
-- < teams_left -1 ["blue", 3]
-- < teams_left +1 ["blue", null]
-- < teams_left +1 ["red", 1]
-- < teams_left -1 ["red", 2]
-- < teams_full -1 ["blue", 10]
-- < teams_full +1 ["blue", null]
-- < scorers_right -1 [10, "blue"]
-- < scorers_right -1 [13, "red"]
-- < scorers_right +1 [13, null]
