-- Queries that are kept: a name, the nodes below the output and how they read if not the changes alone, the query.

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

-- as of join: versions join
select b.price, a.reserve, a._version as v from bid b join auction for system_time as of b.at as a on a.id = b.auction;

-- as of left join: versions join anti
select b.auction, b.price, a.reserve from bid b left join auction for system_time as of b.at a on a.id = b.auction;

-- versions: versions
select * from `auction.versions`;

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

-- left join: upsert join anti
select a.id, b.price from auction a left join bid b on a.id = b.auction;

-- right join: upsert join anti
select a.id, b.price from auction a right join bid b on a.id = b.auction;

-- full join: upsert join anti anti
select a.id, b.price from auction a full join bid b on a.id = b.auction;

-- left join with residual: upsert join anti
select a.id, b.price from auction a left join bid b on a.id = b.auction and b.price > a.reserve;

-- full join with residual: upsert join anti join anti
select a.id, p.name from auction a full join person p on a.seller = p.id and a.reserve > length(p.name);

-- full join using: upsert join anti anti
select * from auction full join person using (id);

-- left join without keys: upsert join anti
select a.id, p.id as person from auction a left join person p on a.reserve > p.id * 5;

-- left join null safe: upsert join anti
select a.id, b.price from auction a left join bid b on a.seller <=> b.bidder;

-- left join on nothing: upsert
select a.id, p.name from auction a left join person p on false;

-- chain of outer joins: upsert join anti join anti
select p.id, a.id as auction, b.price from person p left join auction a on a.seller = p.id left join bid b
on b.auction = a.id;

-- count over a left join: upsert join anti aggregate
select p.id, count(a.id) as n, sum(a.reserve) as s from person p left join auction a on a.seller = p.id
group by p.id;

-- in: upsert semi
select * from bid where auction in (select id from auction);

-- in of several columns: upsert semi
select id, category from auction where (id, seller) in (select auction, bidder from bid where price > 5);

-- exists with residual: upsert join semi
select id, reserve from auction a where exists (select 1 from bid b where b.auction = a.id and b.price >
a.reserve);

-- exists of all: upsert top join anti
select id from person where exists (select 1 from auction where reserve > 38);

-- not exists: upsert anti
select * from person p where not exists (select 1 from auction a where a.seller = p.id);

-- not exists with residual: join anti
select auction, price from bid b where not exists (select 1 from bid c where c.auction = b.auction and
c.price > b.price);

-- exists in exists: upsert semi semi
select id, name from person p where exists (select 1 from auction a where a.seller = p.id and exists (select 1 from
bid b where b.auction = a.id));

-- exists in exists of the outer alone: upsert semi semi
select id from person p where exists (select 1 from auction a where a.seller = p.id and exists (select 1 from bid
where a.reserve > 10));

-- exists in in, thrice: upsert join anti anti semi
select auction, price from bid b where b.bidder in (select id from person p where not exists (select 1 from auction a
where a.seller = p.id and a.id not in (select c.auction from bid c where c.bidder = a.seller)));

-- exists in a scalar subquery: upsert semi aggregate join anti
select p.id, (select max(reserve) from auction a where a.seller = p.id and exists (select 1 from bid b where b.auction =
a.id)) as most from person p;

-- in within exists in the select list: upsert join semi existence
select id, exists (select 1 from auction a where a.seller = p.id and a.id in (select auction from bid b where b.price >
a.reserve)) as sold from person p;

-- exists in a lateral subquery: aggregate upsert semi aggregate join anti join
select p.id, l.n from person p, lateral (select count(*) as n from auction a where a.seller = p.id and exists (select 1
from bid b where b.auction = a.id)) l;

-- exists in exists in an outer join: upsert semi semi join anti
select p.id, a.id as auction from person p left join auction a on a.seller = p.id and exists (select 1 from bid b where
b.auction = a.id and exists (select 1 from person q where q.id = b.bidder));

-- not in with nulls: upsert existence aggregate join
select auction, price from bid where auction not in (select seller from auction);

-- not in without nulls: upsert existence aggregate join
select auction, price from bid where auction not in (select id from auction);

-- not in of one side: existence aggregate join
select id from person where id not in (select bidder from bid where bidder is not null and price > 27);

-- not in correlated: upsert join anti
select id, category from auction a where reserve not in (select price from bid b where b.auction = a.id);

-- existence under or: upsert existence
select price > 3 or exists (select 1 from auction where id = bid.auction) as x from bid;

-- existence in a filter: upsert existence
select auction, price from bid where price > 25 or auction in (select id from auction where category = 1);

-- not in under or: upsert join existence
select auction, price from bid where price > 25 or auction not in (select seller from auction where seller
is not null);

-- left semi join: upsert semi
select * from auction a left semi join bid b on a.id = b.auction and b.channel = 'a';

-- left anti join: upsert anti
select * from auction a left anti join person p on a.seller <=> p.id;

-- extremes that retract: upsert aggregate
select category, max(reserve) as m, min(seller) as s, max(id) as i from auction group by category;

-- global extremes that retract: upsert join aggregate
select max(reserve) as a, min(name) as b from auction join person on person.id = seller;

-- extremes of counts: aggregate aggregate
select max(n) as most, min(n) as least from (select auction, count(*) as n from bid group by auction);

-- extremes with filter: upsert aggregate
select category, max(reserve) filter (where seller > 3) as m, min(distinct reserve) as d from auction group
by category;

-- booleans that retract: upsert aggregate
select category, every(reserve > 5) as e, some(reserve > 30) as s from auction group by category;

-- count distinct: aggregate aggregate
select count(distinct bidder) as n from bid;

-- count distinct with filters: aggregate aggregate aggregate join
select channel, count(*) as n, count(distinct bidder) as b, count(distinct bidder) filter (where price > 300) as c,
  sum(distinct bidder) filter (where price > 500 or channel is null) as d from bid group by channel;

-- count distinct of one filter: aggregate aggregate
select count(distinct bidder) filter (where price > 300) as n from bid;

-- count distinct with filters of a table: upsert aggregate aggregate
select count(distinct seller) filter (where reserve > 30) as n, avg(distinct seller) filter (where category = 2) as m
from auction;

-- count distinct by group: aggregate aggregate aggregate join
select auction, count(distinct bidder) as n, count(*) as m, sum(price) as s from bid group by auction;

-- count distinct of several with filter: upsert aggregate aggregate
select category, count(distinct seller, reserve) filter (where reserve > 10) as n from auction group by
category;

-- several distinct sets: upsert aggregate aggregate aggregate aggregate join aggregate join
select category, count(distinct seller) as a, sum(distinct reserve) as b, avg(distinct reserve) as c,
count(*) as d from auction group by category;

-- distinct without group: upsert aggregate aggregate aggregate aggregate join aggregate join
select count(distinct seller) as a, sum(distinct reserve) as b, max(id) as c from auction;

-- rollup with distinct: upsert aggregate aggregate aggregate join
select category, seller, count(distinct reserve) as n, count(*) as m from auction group by rollup (category,
seller);

-- grouping sets with distinct: aggregate aggregate aggregate join
select channel, auction, count(distinct bidder) as n, sum(price) as s from bid group by grouping sets
((channel), (auction), ());

-- stddev: rows swap, whole
select stddev(price) as s, variance(amount) as v from bid;

-- stddev by group: rows swap, per key
select channel, stddev_pop(price) as s, covar_samp(price, bidder) as c, skewness(price) as k from bid group
by channel;

-- percentile: upsert rows swap, per key
select category, percentile(reserve, 0.5) as p, median(reserve) as m, mode(seller, true) as o from auction
group by category;

-- percentile within group: rows swap, per key
select auction, percentile_cont(0.25) within group (order by price desc) as p from bid group by auction;

-- collected: rows swap, per key
select auction, sort_array(collect_list(price)) as l, array_sort(collect_set(channel)) as s from bid group
by auction;

-- listagg: upsert rows swap, per key
select category, listagg(cast(id as string), ',') within group (order by id) as l from auction group by
category;

-- first of equal rows: rows swap, per key
select channel, first(channel) as f, last(channel) as l, any_value(channel) as v from bid group by channel;

-- max_by: upsert rows swap, per key
select category, max_by(id, struct(reserve, id)) as best from auction group by category;

-- sketches: rows swap, per key
select auction, hll_sketch_estimate(hll_sketch_agg(bidder)) as n, approx_count_distinct(bidder) as m from
bid group by auction;

-- bit and histogram: upsert rows swap, per key
select category, bit_xor(id) as x, bit_or(reserve) as o, count_min_sketch(id, 0.5d, 0.5d, 1) is null as c
from auction group by category;

-- unusual with distinct and filter: upsert rows swap, per key
select category, collect_set(seller) filter (where seller > 100) as s, stddev(distinct reserve) as d,
count(distinct seller) as n from auction group by category;

-- rollup with unusual: upsert rows swap, per key
select category, seller, median(reserve) as m from auction group by rollup (category, seller);

-- unusual over a float group: rows swap, per key
select score, stddev(price) as s, count(*) as n from bid group by score;

-- unusual of an aggregate: aggregate rows swap, per key
select stddev(n) as s, n % 2 as g from (select auction, count(*) as n from bid group by auction) group by n
% 2;

-- aggregate of unusual: upsert rows swap aggregate, per key
select max(m) as x, count(m) as n from (select category, median(reserve) as m from auction group by
category);

-- having unusual: upsert rows swap, per key
select category, kurtosis(reserve) as k from auction group by category having stddev(reserve) > 3 and
count(*) > 1;

-- pivot: aggregate rows swap, per key
select * from (select auction, channel, price from bid) pivot (sum(price) for channel in ('a', 'b'));

-- session windows: sessions
select bidder, session_window.start as s, session_window.end as e, count(*) as n from bid group by bidder,
session_window(at, '2 seconds');

-- session windows of all: sessions
select session_window(at, '3 seconds') as w, count(*) as n, sum(price) as s from bid group by 1;

-- session windows with every function: sessions
select channel, session_window.start as s, min(price) as lo, max(score) as hi, avg(price) as mean, sum(amount) as
total, count(bidder) filter (where price > 3) as n from bid group by channel, session_window(at, '1 second');

-- session windows with a gap that depends on the row: sessions
select bidder, session_window as w, count(*) as n from bid group by bidder, session_window(at, case when price > 5
then '4 seconds' when price > 3 then '0 seconds' else '1 second' end);

-- session windows with distinct: rows swap, per key
select bidder, session_window as w, count(distinct price) as n from bid group by bidder, session_window(at, '2
seconds');

-- session windows of joined rows that change: upsert join rows swap, per key
select category, session_window.start as s, sum(price) as p from bid join auction on auction = id group by category,
session_window(at, '2 seconds');

-- the longest session of each: sessions aggregate
select bidder, max(n) as most from (select bidder, count(*) as n from bid group by bidder, session_window(at, '2
seconds')) group by bidder;

-- hopping windows with distinct: aggregate aggregate
select window.start as w, count(distinct bidder) as n from bid group by window(at, '10 seconds', '5
seconds');

-- row_number: rows swap, per key
select auction, price, bidder, row_number() over (partition by auction order by price, bidder, channel, at,
amount, score) as r from bid;

-- running sum: upsert rows swap, per key
select id, category, sum(reserve) over (partition by category order by id rows between 2 preceding and
current row) as s from auction;

-- lag and lead: upsert rows swap rows swap, per key
select id, lag(reserve) over (partition by seller order by id) as a, lead(id, 2, -1) over (partition by
seller order by id desc) as b from auction;

-- total beside: rows swap, per key
select price, sum(price) over (partition by auction) as r from bid;

-- two windows: upsert rows swap rows swap, per key
select id, rank() over (partition by category order by reserve) as a, count(*) over (partition by seller) as
b from auction;

-- window of all: upsert rows swap, whole
select id, reserve, rank() over (order by reserve) as a, sum(reserve) over () as s from auction;

-- window by a term: upsert rows swap, per key
select id, max(reserve) over (partition by id % 3, category order by id) as m from auction;

-- window by a float: rows swap, per key
select score, price, count(*) over (partition by score) as n from bid;

-- window over an aggregate: upsert aggregate rows swap, whole
select category, n, sum(n) over (order by category nulls last rows unbounded preceding) as s from (select
category, count(*) as n from auction group by category);

-- aggregate over a window: upsert rows swap aggregate, per key
select r, count(*) as n from (select dense_rank() over (partition by category order by reserve) as r from
auction) group by r;

-- window over a join: upsert join rows swap, per key
select a.id, ntile(2) over (partition by p.state order by a.id) as t from auction a join person p on p.id =
a.seller;

-- window of a range: near swap
select auction, price, count(*) over (partition by auction order by at range between interval 5 seconds
preceding and current row) as n from bid;

-- window of a range around: near swap
select auction, price, at, sum(price) over w as s, min(channel) over w as a, max(amount) over w as b, stddev(score)
over w as d from bid window w as (partition by auction order by at range between interval 3 seconds preceding and
interval 4 seconds following);

-- window of a range of numbers: upsert near swap
select id, seller, reserve, avg(reserve) over (partition by seller order by reserve desc range between 5 preceding and
2 preceding) as a, count(*) over (partition by seller order by reserve range between current row and 3 following) as n
from auction;

-- window of a range of dates: near swap
select price, d, count(*) over (order by d range between 2 preceding and 2 following) as n from (select price,
date_add(date(at), cast(price as int)) as d from bid);

-- window of a range without a zone: upsert join near swap
select a.id, b.at, sum(b.price) over (partition by a.category, a.id order by cast(b.at as timestamp_ntz) range between
current row and interval 1 day following) as s from bid b join auction a on a.id = b.auction;

-- window of long days: near swap
select bidder, at, count(*) over (partition by bidder order by at nulls last range between interval 30 hours preceding
and interval 1 hour preceding) as n from bid;

-- window of peers: near swap
select channel, price, count(*) over (partition by channel order by price range between current row and current row)
as n from bid;

-- windows of ranges in each other: near swap
select auction, at, sum(n) over (partition by auction order by at range between interval 2 seconds preceding and
current row) as s from (select auction, at, count(*) over (partition by auction order by at range between interval 3
seconds preceding and interval 1 second following) as n from bid);

-- window of a range by a float: near swap
select score, at, min(price) over w as a, count(bidder) over w as b, any_value(score) over w as c from bid window w as
(partition by score order by at desc range between interval 5 seconds preceding and interval 1 second following);

-- window of a range of days: near swap
select price, d, sum(price) over (partition by price % 2 order by d desc range between interval 3 days preceding and
interval 1 day following) as n from (select price, date_add(date(at), cast(price as int)) as d from bid);

-- window of a range beside one of all: upsert near swap rows swap, per key
select id, sum(reserve) over (partition by category order by id range between 1 preceding and current row) as s,
count(*) over (partition by category) as n from auction;

-- window of months: rows swap, per key
select auction, price, count(*) over (partition by auction order by at range between interval 1 month preceding and
current row) as n from bid;

-- window of a range of fractions: rows swap rows swap, per key
select auction, price, count(*) over (partition by auction order by score range between 1 preceding and 1 following)
as n, sum(price) over (partition by auction order by amount range between 1 preceding and current row) as s from bid;

-- window of a range that began long ago: upsert rows swap, per key
select id, sum(reserve) over (partition by category order by id range between unbounded preceding and 1 following)
as s from auction;

-- windows with nth values: upsert rows swap, per key
select id, first_value(id) over w as a, last_value(id) ignore nulls over w as b, nth_value(id, 2) over w as
c, percent_rank() over w as d, cume_dist() over w as e from auction window w as (partition by category order
by reserve, id);

-- window with distinct rows: upsert rows swap aggregate, per key
select distinct category, max(reserve) over (partition by category) as m from auction;

-- latest by key: upsert top
select * from (select id, category, reserve, row_number() over (partition by category order by reserve desc,
id) as r from auction) where r = 1;

-- best three: upsert top
select id, category from (select id, category, row_number() over (partition by category order by reserve
desc nulls last, id) as r from auction) where r <= 3;

-- ranks: top
select * from (select auction, price, rank() over (partition by auction order by price desc) as r from bid)
where r < 3;

-- first of each without order: upsert top aggregate
select distinct category from (select category, row_number() over (partition by category order by 1) as r
from auction) where r = 1;

-- dense ranks: upsert top
select * from (select id, dense_rank() over (order by category) as r from auction) where r between 2 and 3;

-- qualify: upsert top
select id, reserve from auction qualify row_number() over (partition by seller order by id desc) = 1;

-- qualify with more: upsert top
select id, reserve from auction where reserve > 3 qualify rank() over (partition by category order by
reserve) <= 2 and id > 1;

-- qualify without a limit: upsert rows swap, per key
select id, reserve from auction qualify rank() over (partition by category order by reserve) > 2;

-- count of the best: upsert join top aggregate
select state, count(*) as n from (select p.state, row_number() over (partition by a.category order by
a.reserve, a.id) as r from auction a join person p on p.id = a.seller) where r <= 2 group by state;

-- top: top
select auction, price, bidder from bid order by price desc nulls last, auction, bidder limit 10;

-- top of a table: upsert top
select id, reserve from auction order by reserve, id limit 3;

-- top with offset: upsert top
select id, reserve from auction order by reserve desc, id limit 3 offset 2;

-- offset alone: upsert top
select id from auction order by id offset 3;

-- limit without order: top
select 1 as one from bid limit 3;

-- limit of nothing
select id from person limit 0;

-- limit of a limit: top top
select id, name from (select * from person order by id desc limit 5) order by id limit 2;

-- top of an aggregate: aggregate top
select auction, count(*) as n from bid group by auction order by n desc, auction limit 3;

-- aggregate of the top: upsert top aggregate
select sum(reserve) as s from (select reserve from auction order by reserve desc nulls last, id limit 4);

-- join with the top: upsert top join
select b.price, a.reserve from bid b join (select id, reserve from auction order by reserve desc, id limit
2) a on a.id = b.auction;

-- lateral with limit: top join
select p.id, t.price from person p, lateral (select price, at from bid b where b.bidder = p.id order by
price desc, at, auction, channel, amount limit 2) t;

-- lateral with limit alone: top join aggregate
select distinct p.id from person p, lateral (select bidder from bid b where b.bidder = p.id limit 1) t;

-- lateral left: aggregate aggregate join join anti
select p.id, t.n from person p left join lateral (select count(*) as n, max(price) as m from bid b where
b.bidder = p.id) t on t.m > 10;

-- min of an array: rows swap, whole
select min(tags) as m from bid;

-- max of a struct: upsert rows swap, per key
select category, max(struct(reserve, id)) as m, count(*) as n from auction group by category;

-- order by a struct: upsert top
select id from auction order by struct(reserve, id) limit 2;

-- rank by a struct: upsert top
select * from (select id, rank() over (partition by category order by
if(id % 3 = 0, null, struct(reserve, struct(seller))) desc nulls first) as r from auction) where r <= 2;

-- scalar subquery: aggregate join
select price > (select avg(price) from bid) as z from bid;

-- scalar subquery in a filter: upsert aggregate join
select id, reserve from auction where reserve > (select avg(reserve) from auction);

-- scalar subqueries: upsert aggregate join aggregate join aggregate join
select id, (select max(price) from bid) as a, (select min(name) from person) as b from auction where reserve
< (select max(id) * 5 from person);

-- correlated count: upsert aggregate join anti
select id, (select count(*) from bid b where b.auction = a.id) as n from auction a;

-- correlated max: upsert aggregate join anti
select id, (select max(price) from bid b where b.auction = a.id and b.channel = 'a') as m from auction a;

-- correlated single: aggregate join anti
select auction, (select name from person p where p.id = b.bidder) as name from bid b;

-- single row: upsert aggregate join anti
select id, (select name from person where id = 3) as name from auction;

-- scalar subquery in an aggregate: upsert aggregate join aggregate
select category, sum(reserve - (select min(reserve) from auction)) as s from auction group by category;

-- scalar subquery around an aggregate: upsert aggregate aggregate aggregate join
select category, count(distinct seller) + (select count(*) from person) as n from auction group by category;

-- scalar subquery in the condition of an outer join: upsert aggregate join join anti
select a.id, p.name from auction a left join person p on p.id = a.seller and a.reserve > (select avg(price) from bid);

-- scalar subquery in the condition of a full join: upsert aggregate join join anti join anti
select a.id, p.name from auction a full join person p on p.id = a.seller and a.reserve > (select avg(price) from bid);

-- scalar subquery in not in: upsert aggregate join existence aggregate join
select id from auction a where seller + (select count(*) from person) not in (select bidder from bid);

-- scalar subquery in an order: upsert aggregate join top
select id from auction order by abs(reserve - (select avg(reserve) from auction)), id limit 2;

-- scalar subquery in a generator: upsert aggregate join
select id, e from auction lateral view explode(sequence(0, (select cast(max(id) as int) from person))) as e;

-- scalar subquery beside an aggregate: upsert aggregate aggregate join
select category, count(*) as n from auction group by category having count(*) > (select count(*) / 10 from
auction);

-- intersect: upsert semi aggregate
select id from person intersect select seller from auction;

-- except: upsert anti aggregate
select id from person except select seller from auction;

-- minus of a filter: upsert anti aggregate
select id, category from auction minus select id, category from auction where reserve > 20;

-- nested: upsert top join anti aggregate aggregate aggregate join
with ranked as (select *, row_number() over (partition by category order by reserve desc, id) as r from
auction), best as (select * from ranked where r <= 2) select b.category, count(distinct p.state) as states,
max(b.reserve) as m from best b left join person p on p.id = b.seller group by b.category;

-- subquery in a subquery: upsert aggregate join semi
select id from person where id in (select seller from auction where reserve > (select avg(reserve) from
auction));

-- union of tops: upsert top top
(select id from auction order by id limit 2) union all (select id from person order by id desc limit 2);

-- most of each as a join: aggregate top
with counted as (select auction, bidder, count(*) as n from bid group by auction, bidder) select c.bidder, c.n,
m.most from counted c join (select auction, max(n) as most from counted group by auction) m on c.auction =
m.auction and c.n >= m.most;

-- most of each as a join by its value: aggregate top
with counted as (select auction, bidder, count(*) as n from bid group by auction, bidder) select c.auction,
c.bidder, m.most from (select auction as a, max(n) as most from counted group by auction) m join counted c on
c.auction = m.a and c.n = m.most;

-- least of each as a join: upsert top
select a.id, a.reserve, m.category, m.least from auction a join (select category, min(reserve) as least from
auction group by category) m on a.category = m.category and a.reserve <= m.least;

-- not the most of the same rows: upsert aggregate join
select a.id, m.most from auction a join (select category, max(reserve) as most from auction where id > 2 group
by category) m on a.category = m.category and a.reserve >= m.most;

-- more than the most of another column: upsert aggregate join
select a.id, m.most from auction a join (select category, max(id) as most from auction group by category) m on
a.category = m.category and a.reserve >= m.most;

-- below the most: upsert aggregate join
select a.id, m.most from auction a join (select category, max(reserve) as most from auction group by category)
m on a.category = m.category and a.reserve <= m.most;

-- leaders: aggregate top
select * from (select auction, bidder, n, rank() over (partition by auction order by n desc) as r from (select
auction, bidder, count(*) as n, sum(price) as s from bid group by auction, bidder)) where r <= 2;

-- leaders by the least: aggregate top
select * from (select auction, bidder, m, s, rank() over (partition by auction order by m nulls last) as r from
(select auction, bidder, min(price) as m, sum(price) as s from bid group by auction, bidder)) where r <= 2;

-- leaders with what changes beside: aggregate top
select auction, n, s from (select auction, count(*) as n, sum(price) as s from bid group by auction) order by n
desc, auction limit 3;

-- most of each by two columns that are equal: upsert aggregate join
select a.id, m.most from auction a join (select category, max(reserve) as most from auction group by category) m
on a.category = m.category and a.seller = m.category and a.reserve >= m.most;

-- most of each unless it is something: upsert aggregate join
select a.id, m.most from auction a join (select category, max(reserve) as most from auction group by category
having nullif(max(reserve), 3) is not null) m on a.category = m.category and a.reserve >= m.most;
