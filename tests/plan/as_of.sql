-- Tables as of a time: a name, the query, and below it the query that joins with versions and means the same.

-- join
select id, rate from orders o join rates for system_time as of o.at as r on o.country = r.country;

-- join: the same
select id, rate from orders o join `rates.versions` as r on o.country = r.country
and r._valid_from <= o.at and (r._valid_to is null or o.at < r._valid_to);

-- left join with an or
select id, rate from orders o left join rates for system_time as of o.at r on o.country = r.country or rate = 1;

-- left join with an or: the same
select id, rate from orders o left join `rates.versions` r on (o.country = r.country or rate = 1)
and r._valid_from <= o.at and (r._valid_to is null or o.at < r._valid_to);

-- no alias
select id, rates.rate from orders join rates for timestamp as of orders.at on orders.country = rates.country;

-- no alias: the same
select id, rate from orders o join `rates.versions` as r on o.country = r.country
and r._valid_from <= o.at and (r._valid_to is null or o.at < r._valid_to);

-- comma
select id, rate from orders o, `RATES` timestamp as of o.at r where o.country = r.country;

-- comma: the same
select id, rate from orders o join `rates.versions` r where o.country = r.country
and r._valid_from <= o.at and (r._valid_to is null or o.at < r._valid_to);

-- two tables
select id, r.rate, f.rate as fee from orders o
join rates for system_time as of o.at as r on o.country = r.country
left join `shop.fees` for system_time as of date_trunc('day', o.at) as f on f.country = r.country;

-- two tables: the same
select id, r.rate, f.rate as fee from orders o
join `rates.versions` as r on o.country = r.country
and r._valid_from <= o.at and (r._valid_to is null or o.at < r._valid_to)
left join `shop.fees.versions` f on f.country = r.country
and f._valid_from <= date_trunc('day', o.at) and (f._valid_to is null or date_trunc('day', o.at) < f._valid_to);

-- comments and other letters
select '🙂 as of' as s, id, rate from orders o join rates -- for system_time as of o.id
for system_time /* when? */ as of
(o.at + interval 1 day /* then */) r on o.country = r.country;

-- comments and other letters: the same
select '🙂 as of' as s, id, rate from orders o join `rates.versions` r on o.country = r.country
and r._valid_from <= o.at + interval 1 day and (r._valid_to is null or o.at + interval 1 day < r._valid_to);

-- in a with
with t as (select id, rate from orders o join rates for system_time as of o.at r on o.country = r.country),
u as (select * from t)
select rate, count(*) as n from u group by rate;

-- in a with: the same
select rate, count(*) as n from orders o join `rates.versions` as r on o.country = r.country
and r._valid_from <= o.at and (r._valid_to is null or o.at < r._valid_to) group by rate;

-- in a condition
select id from orders where id in
(select id from orders o join rates for system_time as of o.at r on o.country = r.country where rate > 5);

-- in a condition: the same
select id from orders where id in (select id from orders o join `rates.versions` as r on o.country = r.country
and r._valid_from <= o.at and (r._valid_to is null or o.at < r._valid_to) where rate > 5);

-- in a scalar subquery
select x.id, (select max(rate) from orders o join rates for system_time as of o.at r on o.country = r.country
where o.id = x.id) as m from orders x;

-- in a scalar subquery: the same
select x.id, (select max(rate) from orders o join `rates.versions` r on o.country = r.country
and r._valid_from <= o.at and (r._valid_to is null or o.at < r._valid_to) where o.id = x.id) as m from orders x;

-- in a union
select * from (select id, rate from orders o join rates for system_time as of o.at r on o.country = r.country
union all select 1, 2);

-- in a union: the same
select id, rate from orders o join `rates.versions` r on o.country = r.country
and r._valid_from <= o.at and (r._valid_to is null or o.at < r._valid_to) union all select 1, 2;

-- anti join
select id from orders o left anti join rates for system_time as of o.at r on o.country = r.country;

-- anti join: the same
select id from orders o left anti join `rates.versions` r on o.country = r.country
and r._valid_from <= o.at and (r._valid_to is null or o.at < r._valid_to);

-- a time for all
select country, rate from rates for system_time as of '2026-01-01';

-- a time for all: the same
select country, rate from `rates.versions`
where _valid_from <= '2026-01-01' and (_valid_to is null or '2026-01-01' < _valid_to);

-- a time for all in a left join
select id, r.rate from orders o left join rates for system_time as of timestamp '2026-01-01 00:00:00' r
on o.country = r.country;

-- a time for all in a left join: the same
select id, r.rate from orders o left join (select * from `rates.versions`
where _valid_from <= timestamp '2026-01-01 00:00:00'
and (_valid_to is null or timestamp '2026-01-01 00:00:00' < _valid_to)) r on o.country = r.country;
