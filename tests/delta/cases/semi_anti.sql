-- Semi and anti joins: rows that have a match or none, however many matches there are.
CREATE STREAM visits (user INT, page STRING);
CREATE TABLE members (id INT PRIMARY KEY, since INT);

CREATE MATERIALIZED VIEW visits_of_members AS
SELECT user, page FROM visits WHERE user IN (SELECT id FROM members);
-- view of user, page [n2, incremental]
--   semi join on (visits.user = members.id) [n1, incremental]
--     filter (visits.user IS NOT NULL)
--       stream visits
--     filter (members.id IS NOT NULL)
--       upsert by id [n0, incremental]
--         table members

CREATE MATERIALIZED VIEW idle_members AS
SELECT id FROM members m WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.user = m.id);
-- view of id, key id [n2, incremental]
--   anti join on (v.user = m.id) [n1, incremental]
--     upsert by id [n0, incremental]
--       table members
--     filter (v.user IS NOT NULL)
--       stream visits

CREATE MATERIALIZED VIEW early_members AS
SELECT id FROM members m WHERE NOT EXISTS (SELECT 1 FROM members n WHERE n.since < m.since);
-- view of id, key id [n3, incremental]
--   anti join on (n.since < m.since) [n2, incremental]
--     upsert by id [n0, incremental]
--       table members
--     filter (n.since IS NOT NULL)
--       upsert by id [n0, incremental]
--         table members

-- epoch: a visit before its member, and a member without a visit
-- > visits +1 [1, "home"]
-- > visits +2 [1, "shop"]
-- > members +1 [2, 5]
-- < idle_members +1 [2]
-- < early_members +1 [2]

-- epoch: the member comes, and all visits of it
-- > members +1 [1, 3]
-- > visits +1 [null, "home"]
-- < visits_of_members +1 [1, "home"]
-- < visits_of_members +2 [1, "shop"]
-- < early_members +1 [1]
-- < early_members -1 [2]

-- epoch: a member of two visits is idle no more, which is told once
-- > visits +1 [2, "home"]
-- > visits +1 [2, "home"]
-- < visits_of_members +2 [2, "home"]
-- < idle_members -1 [2]

-- epoch: the member goes
-- > members -1 [1]
-- < visits_of_members -1 [1, "home"]
-- < visits_of_members -2 [1, "shop"]
-- < early_members -1 [1]
-- < early_members +1 [2]
