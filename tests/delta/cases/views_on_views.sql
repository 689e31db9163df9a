-- Views on views: the changes of one are the input of the next, in the same epoch.
CREATE TABLE hits (id INT PRIMARY KEY, page STRING);

CREATE MATERIALIZED VIEW hits_by_page AS
SELECT page, count(*) AS n FROM hits GROUP BY page;
-- view of page, n, key page [n2, incremental]
--   aggregate count(1) by page [n1, incremental]
--     upsert by id [n0, incremental]
--       table hits

CREATE MATERIALIZED VIEW pages_by_hits AS
SELECT n, count(*) AS pages FROM hits_by_page GROUP BY n;
-- view of n, pages, key n [n1, incremental]
--   aggregate count(1) by n [n0, incremental]
--     view hits_by_page

CREATE MATERIALIZED VIEW popular_hits AS
SELECT h.id, p.n FROM hits h JOIN hits_by_page p ON h.page = p.page WHERE p.n > 1;
-- view of id, n, key id [n2, incremental]
--   join on (h.page = p.page) [n1, incremental]
--     filter (h.page IS NOT NULL)
--       upsert by id [n0, incremental]
--         table hits
--     filter (((p.n IS NOT NULL) AND (p.n > 1L)) AND (p.page IS NOT NULL))
--       view hits_by_page

CREATE MATERIALIZED VIEW total_of_popular AS
SELECT count(*) AS n, sum(n) AS weight FROM popular_hits;
-- view of n, weight [n1, incremental]
--   aggregate count(1), sum(popular_hits.n) [n0, incremental]
--     view popular_hits

-- epoch: all of them are built at once
-- > hits +1 [1, "a"]
-- > hits +1 [2, "a"]
-- > hits +1 [3, "b"]
-- < hits_by_page +1 ["a", 2]
-- < hits_by_page +1 ["b", 1]
-- < pages_by_hits +1 [1, 1]
-- < pages_by_hits +1 [2, 1]
-- < popular_hits +1 [1, 2]
-- < popular_hits +1 [2, 2]
-- < total_of_popular +1 [2, 4]

-- epoch: one hit moves; the numbers of pages stay as they are and are not told
-- > hits +1 [1, "b"]
-- < hits_by_page +1 ["a", 1]
-- < hits_by_page -1 ["a", 2]
-- < hits_by_page -1 ["b", 1]
-- < hits_by_page +1 ["b", 2]
-- < popular_hits -1 [2, 2]
-- < popular_hits +1 [3, 2]

-- epoch: everything goes
-- > hits -1 [1]
-- > hits -1 [2]
-- > hits -1 [3]
-- < hits_by_page -1 ["a", 1]
-- < hits_by_page -1 ["b", 2]
-- < pages_by_hits -1 [1, 1]
-- < pages_by_hits -1 [2, 1]
-- < popular_hits -1 [1, 2]
-- < popular_hits -1 [3, 2]
-- < total_of_popular +1 [0, null]
-- < total_of_popular -1 [2, 4]
