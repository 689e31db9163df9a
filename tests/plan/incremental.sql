-- Queries that are kept incrementally: a name, then the query.

-- project
select auction, price * 2 as double, upper(channel) as loud from bid;

-- filter
select auction, price from bid where price > 10 and channel is not null;

-- guard
select 100 / price as part from bid where price > 0;

-- cast guard
select cast(channel as int) as n from bid where channel rlike '^[0-9]+$';

-- nested struct
select named_struct('a', auction, 'b', array(price, bidder)) as s, tags from bid;

-- maps
select auction, attrs, map('k', price) as m from bid;

-- table
select id, category from auction where reserve > 5;

-- whole table
select * from auction;

-- view
select state, name from person where id > 2;

-- join
select b.auction, a.category, b.price from bid b join auction a on a.id = b.auction;

-- join with residual
select * from bid b join auction a on a.id = b.auction and b.price > a.reserve;

-- join on terms
select b.price, a.id from bid b join auction a on a.id + 1 = b.auction * 2;

-- join null safe
select b.price, a.seller from bid b join auction a on a.seller <=> b.bidder;

-- join by alternatives
select b.price, a.id from bid b join auction a on a.id = b.auction or a.seller = b.bidder;

-- cross join
select p.id, a.id as auction from person p cross join auction a;

-- theta join
select b.price, a.id from bid b join auction a on b.price < a.reserve;

-- self join
select x.price as one, y.price as two from bid x join bid y on x.auction = y.auction;

-- self join of a table
select x.id, y.id as other from auction x join auction y on x.seller = y.seller;

-- three tables
select p.name, a.category, b.price from bid b join auction a on a.id = b.auction join person p on p.id =
a.seller;

-- using
select * from auction join (select id, name from person) using (id);

-- count
select auction, count(*) as n, count(price) as m, count(price, bidder) as k from bid group by auction;

-- sums
select channel, sum(price) as a, sum(amount) as b, sum(score) as c, sum(took) as d, avg(price) as e,
avg(amount) as f, avg(score) as g, avg(took) as h from bid group by channel;

-- global
select count(*) as n, sum(price) as s, avg(price) as a from bid;

-- global over nothing
select count(*) as n, sum(price) as s from bid where price > 1000;

-- aggregate filter
select auction, count(*) filter (where price > 10) as a, count_if(price > 5) as b, sum(price) filter (where
channel = 'a') as c from bid group by auction;

-- having
select auction, sum(price) / count(*) + 1 as z from bid group by auction having sum(price) > 10;

-- group by term
select auction % 3 as g, upper(channel) as u, count(*) as n from bid group by 1, 2;

-- group by float
select score, count(*) as n from bid group by score;

-- group by array
select tags, count(*) as n from bid group by tags;

-- aggregate of table
select category, sum(reserve) as s, count(*) as n from auction group by category;

-- aggregate of aggregate
select n, count(*) as m from (select auction, count(*) as n from bid group by auction) group by n;

-- aggregate over join
select a.category, avg(b.price) as p, count(*) as n from bid b join auction a on a.id = b.auction group by
a.category;

-- join of aggregates
with t as (select auction, count(*) as c from bid group by auction) select x.auction, y.auction as other,
x.c from t x join t y on x.c = y.c and x.auction < y.auction;

-- extremes
select auction, min(price) as a, max(at) as b, max(channel) as c, min(score) as d from bid group by auction;

-- booleans
select auction, bool_and(price > 3) as a, bool_or(price > 20) as b from bid group by auction;

-- global extremes
select max(price) as a from bid;

-- try_sum
select channel, try_sum(price) as a, try_avg(price) as b from bid group by channel;

-- distinct
select distinct channel, auction from bid;

-- distinct of table
select distinct category from auction;

-- extremes of distinct
select max(channel) as c from (select distinct channel from bid);

-- union all
select id from person union all select seller from auction union all select 1;

-- union
select id from person union select seller from auction;

-- union twice
select auction, 'a' as k from bid union all select auction, 'b' from bid where price > 5;

-- except all
select id from person except all select seller from auction;

-- intersect all
select id from person intersect all select seller from auction;

-- explode
select auction, tag from bid lateral view explode(tags) as tag;

-- explode outer
select auction, tag from bid lateral view outer explode(tags) as tag;

-- posexplode
select auction, pos, tag from bid lateral view posexplode(tags) as pos, tag;

-- posexplode outer
select auction, pos, tag from bid lateral view outer posexplode(tags) as pos, tag;

-- explode map
select auction, k, v from bid lateral view explode(attrs) as k, v;

-- posexplode map
select auction, i, k, v from bid lateral view outer posexplode(attrs) t as i, k, v;

-- explode then filter
select upper(tag) as u, price from bid lateral view explode(tags) as tag where tag > 'b' and price > 3;

-- explode twice
select tag, k from bid lateral view explode(tags) as tag lateral view explode(map_keys(attrs)) as k where k
< tag;

-- inline
select auction, a, b from bid lateral view inline(array(named_struct('p', price, 'n', 1), named_struct('p',
bidder, 'n', 2))) as a, b;

-- stack
select auction, k, v from bid lateral view stack(2, 'p', price, 'b', bidder) as k, v;

-- explode and count
select tag, count(*) as n from bid lateral view explode(tags) as tag group by tag;

-- rollup
select category, seller, count(*) as n, grouping(seller) as g from auction group by rollup (category,
seller);

-- cube
select category, seller, avg(reserve) as a from auction group by cube (category, seller);

-- grouping sets
select channel, auction, sum(price) as s from bid group by grouping sets ((channel), (auction), ());

-- unpivot
select * from (select id, seller, reserve from auction) unpivot (v for k in (seller, reserve));

-- values
select v.k, sum(price) as s from bid join (values (1, 'a'), (2, 'b')) as v(k, c) on c = channel group by v.k;

-- range
select r.id, b.price from range(5) r join bid b on b.auction = r.id;

-- constant only
select 1 as one, 'x' as two;

-- empty
select auction from bid where 1 = 0;

-- tumbling windows
select window(at, '10 seconds').start as w, count(*) as n from bid group by window(at, '10 seconds');

-- hopping windows
select auction, window.end as e, count(*) as c from bid group by auction, window(at, '10 seconds', '2
seconds');

-- lambdas
select transform(tags, x -> concat(x, channel)) as t, filter(tags, x -> x > channel) as f from bid;

-- used twice
select d + 1 as e, d + 2 as f, d as g from (select regexp_replace(channel, 'a', '1') as h, price * 7 +
bidder as d from bid);

-- dear and used twice
select concat(h, h, h) as e, length(h) as f from (select regexp_replace(channel, 'a', '1') as h from bid);

-- ordered
select auction, price from bid order by price desc;

-- pipe
from bid |> where price > 10 |> aggregate sum(price) as s group by auction |> where s > 20;

-- qualified star
select a.*, p.name from auction a join person p on a.seller = p.id;

-- scalar in list
select auction from bid where channel in ('a', 'b') and price in (1,2,3,4,5,6,7,8,9,10,11,12,13);

-- case
select case when price > 10 then 'high' when price is null then 'none' else 'low' end as c, count(*) as n
from bid group by 1;

-- lateral alias
select price * 2 as d, d + 1 as e from bid;

-- correlated sum
select id, (select count(*) from bid b where b.auction = a.id) is null as none from auction a where a.id >
100;

-- null column
select null as n, auction from bid;

-- count of a cross join
select count(*) as n from person cross join auction;

-- hint
select /*+ broadcast(a) */ b.price, a.id from bid b join auction a on a.id = b.auction;

-- group by struct
select named_struct('c', channel, 's', score) as g, count(*) as n, sum(took) as t from bid group by 1;

-- join on several
select b.price, a.reserve from bid b join auction a on a.id = b.auction and a.seller <=> b.bidder;

-- having without group
select sum(reserve) as s from auction having count(*) > 2;

-- natural
select * from (select auction as id, price from bid) natural join person;

-- constant joined
select a.id, v.x from auction a cross join (values (1), (2)) as v(x) where a.id > v.x;

-- group by constant
select 'all' as k, count(*) as n from bid group by 'all';

-- explode of a struct array
select e.p, e.n + 1 as m from bid lateral view explode(array(named_struct('p', price, 'n', auction))) as e;

-- times
select date_trunc('minute', at) as m, cast(at as date) as d, hour(at) as h, count(*) as n from bid group by all;

-- lateral
select b.price, t.reserve from bid b, lateral (select reserve from auction where id = b.auction) t;

-- sum of aggregate
select sum(n) as total, avg(n) as mean from (select channel, count(*) as n from bid group by channel);

-- in a subquery in from
select * from (select auction, sum(price) as s from bid group by auction) t where s > 10;
