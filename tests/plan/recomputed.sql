-- Queries that are recomputed: the reason, then the query.

-- a recursive query
with recursive t(n) as (select 1 union all select n + 1 from t where n < 10) select * from t;

-- ORDER BY of ARRAY<STRING>
select price from bid order by tags limit 2;

-- the generator json_tuple
select json_tuple(channel, 'a') as x from bid;

-- grouping by a MAP
select attrs, count(*) as n from bid group by attrs;

-- a window or aggregate by a MAP
select attrs, stddev(price) as s from bid group by attrs;

-- grouping by a STRING COLLATE UTF8_LCASE
select channel collate UTF8_LCASE as c, count(*) as n from bid group by 1;

-- PARTITION BY by a STRING COLLATE UTF8_LCASE
select * from (select id, row_number() over (partition by name collate UTF8_LCASE order by id) as r from person) where
r = 1;

-- a join by a STRING COLLATE UTF8_LCASE
select b.price, p.id from bid b join person p on b.channel collate UTF8_LCASE = p.name collate UTF8_LCASE;

-- a constant of 1,000,000 rows
select * from range(1000000);

-- a column of type INTERVAL YEAR TO MONTH
select a.id, count(*) as n from (select id, make_ym_interval(category) as m from auction) a group by a.id,
a.m;

-- a scalar subquery inside an operator that Spark runs
select category, median(reserve - (select min(reserve) from auction)) as m from auction group by category;
