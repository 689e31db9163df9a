-- Distinct: a row is there as long as it is there at least once.
CREATE TABLE logins (id INT PRIMARY KEY, person STRING, device STRING);

CREATE MATERIALIZED VIEW persons AS
SELECT DISTINCT person FROM logins;
-- view of person, key person [n2, incremental]
--   distinct person [n1, incremental]
--     upsert by id [n0, incremental]
--       table logins

CREATE MATERIALIZED VIEW names_in_use AS
SELECT person AS name FROM logins UNION SELECT device FROM logins;
-- view of name, key name [n2, incremental]
--   distinct name [n1, incremental]
--     union all
--       upsert by id [n0, incremental]
--         table logins
--       upsert by id [n0, incremental]
--         table logins

-- epoch: twice is once, and NULL is a value
-- > logins +1 [1, "Ann", "phone"]
-- > logins +1 [2, "Ann", "Ann"]
-- > logins +1 [3, null, null]
-- < persons +1 ["Ann"]
-- < persons +1 [null]
-- < names_in_use +1 ["Ann"]
-- < names_in_use +1 ["phone"]
-- < names_in_use +1 [null]

-- epoch: one of two goes and nothing changes
-- > logins -1 [2]

-- epoch: the last one goes, another comes
-- > logins -1 [3]
-- > logins +1 [1, "Bob", "phone"]
-- < persons -1 ["Ann"]
-- < persons +1 ["Bob"]
-- < persons -1 [null]
-- < names_in_use -1 ["Ann"]
-- < names_in_use +1 ["Bob"]
-- < names_in_use -1 [null]
