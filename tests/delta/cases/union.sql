-- Union all: the changes of all branches, no state of its own.
CREATE STREAM clicks (page STRING, at INT);
CREATE TABLE pages (page STRING PRIMARY KEY, title STRING);

CREATE MATERIALIZED VIEW all_pages AS
SELECT page FROM clicks UNION ALL SELECT page FROM pages;
-- view of page [n1, incremental]
--   union all
--     stream clicks
--     upsert by page [n0, incremental]
--       table pages

CREATE MATERIALIZED VIEW twice_clicked AS
SELECT page, 'first' AS branch FROM clicks UNION ALL SELECT page, 'second' FROM clicks WHERE at > 5
UNION ALL SELECT 'always', 'constant';
-- view of page, branch [n0, incremental]
--   union all
--     compute branch
--       stream clicks
--     compute second
--       filter ((clicks.at IS NOT NULL) AND (clicks.at > 5))
--         stream clicks
--     compute always, constant
--       1 constant row

-- epoch: a constant comes once, in the first epoch; equal rows of two branches count twice
-- > clicks +1 ["home", 1]
-- > pages +1 ["home", "Welcome"]
-- < all_pages +2 ["home"]
-- < twice_clicked +1 ["always", "constant"]
-- < twice_clicked +1 ["home", "first"]

-- epoch: each branch changes on its own
-- > clicks +1 ["home", 9]
-- > pages -1 ["home"]
-- < twice_clicked +1 ["home", "first"]
-- < twice_clicked +1 ["home", "second"]
