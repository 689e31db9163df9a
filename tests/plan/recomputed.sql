-- Queries that are recomputed: the reason, then the query.

-- a left outer join
select a.id, b.price from auction a left join bid b on a.id = b.auction;

-- a full outer join
select a.id, b.price from auction a full join bid b on a.id = b.auction;

-- a left semi join (IN, EXISTS or INTERSECT)
select * from bid where auction in (select id from auction);

-- a left anti join (NOT IN, NOT EXISTS or EXCEPT)
select * from bid where auction not in (select id from auction);

-- an IN or EXISTS that is part of a larger condition
select price > 3 or exists (select 1 from auction where id = bid.auction) as x from bid;

-- a window function (row_number)
select price, row_number() over (partition by auction order by price) as r from bid;

-- a window function (sum)
select price, sum(price) over (partition by auction) as r from bid;

-- ORDER BY ... LIMIT
select * from bid order by price limit 10;

-- LIMIT or OFFSET
select * from bid limit 10;

-- count(DISTINCT ...)
select count(distinct bidder) as n from bid;

-- sum(DISTINCT ...)
select sum(distinct price) as n from bid group by auction;

-- max over input that retracts
select category, max(reserve) as m from auction group by category;

-- min of ARRAY<STRING>
select min(tags) as m from bid;

-- the aggregate function stddev
select stddev(price) as s from bid;

-- the aggregate function collect_list
select auction, collect_list(price) as s from bid group by auction;

-- a scalar subquery
select price > (select avg(price) from bid) as z from bid;

-- a session window
select session_window(at, '10 seconds') as w, count(*) as n from bid group by 1;

-- the generator json_tuple
select json_tuple(channel, 'a') as x from bid;

-- grouping by a MAP
select attrs, count(*) as n from bid group by attrs;

-- grouping by a STRING COLLATE UTF8_LCASE
select channel collate UTF8_LCASE as c, count(*) as n from bid group by 1;

-- a join by a STRING COLLATE UTF8_LCASE
select b.price, p.id from bid b join person p on b.channel collate UTF8_LCASE = p.name collate UTF8_LCASE;

-- a recursive query
with recursive t(n) as (select 1 union all select n + 1 from t where n < 10) select * from t;

-- a constant of 1,000,000 rows
select * from range(1000000);

-- a column of type INTERVAL YEAR TO MONTH
select a.id, count(*) as n from (select id, make_ym_interval(category) as m from auction) a group by a.id,
a.m;

-- the aggregate function pivotfirst
select * from (select auction, channel, price from bid) pivot (sum(price) for channel in ('a', 'b'));
