-- Upsert: changes of a table by key become rows that come and go.
CREATE TABLE people (id INT PRIMARY KEY, name STRING, score DOUBLE);

CREATE MATERIALIZED VIEW all_people AS
SELECT * FROM people;
-- view of id, name, score, key id [n1, incremental]
--   upsert by id [n0, incremental]
--     table people

-- epoch: the last change of a key wins, also within one epoch
-- > people +1 [1, "Ann", 1.0]
-- > people +1 [2, "Bob", null]
-- > people +1 [1, "Anna", 1.0]
-- < all_people +1 [1, "Anna", 1.0]
-- < all_people +1 [2, "Bob", null]

-- epoch: the same row again changes nothing; nor does deleting what is not there
-- > people +1 [1, "Anna", 1.0]
-- > people -1 [9]

-- epoch: a key that goes and comes back in one epoch has changed, if its row has
-- > people -1 [1]
-- > people +1 [1, "Anna", -0.0]
-- > people -1 [2]
-- > people +1 [2, "Bob", null]
-- < all_people +1 [1, "Anna", -0.0]
-- < all_people -1 [1, "Anna", 1.0]

-- epoch: 0.0 is another row than -0.0
-- > people +1 [1, "Anna", 0.0]
-- < all_people -1 [1, "Anna", -0.0]
-- < all_people +1 [1, "Anna", 0.0]

-- epoch: another key for the same person, in one transaction
-- > people -1 [1]
-- > people +1 [7, "Anna", 0.0]
-- < all_people -1 [1, "Anna", 0.0]
-- < all_people +1 [7, "Anna", 0.0]
