-- A shop and its social feed: what happens, what is, and what people look at.
-- `evert demo` lets it live for a while; a minute of the shop takes a second.

-- What happens: streams, each with the time of its events.

CREATE STREAM requests (visitor BIGINT, device STRING, page STRING, milliseconds DECIMAL(8,1), at TIMESTAMP)
  EVENT TIME at LATENESS INTERVAL 1 MINUTE
  COMMENT 'Every page that somebody asked for';
CREATE STREAM searches (id BIGINT, visitor BIGINT, words STRING, at TIMESTAMP)
  EVENT TIME at LATENESS INTERVAL 1 MINUTE
  COMMENT 'What visitors look for';
CREATE STREAM clicks (search BIGINT, product STRING, at TIMESTAMP)
  EVENT TIME at LATENESS INTERVAL 1 MINUTE
  COMMENT 'The results that they open';
CREATE STREAM cart_changes (visitor BIGINT, product STRING, pieces INT, at TIMESTAMP)
  EVENT TIME at LATENESS INTERVAL 1 MINUTE
  COMMENT 'What is put into carts, and taken out again';
CREATE STREAM orders (id BIGINT, visitor BIGINT, product STRING, pieces INT, amount DECIMAL(10,2), country STRING, at TIMESTAMP)
  EVENT TIME at LATENESS INTERVAL 1 MINUTE
  COMMENT 'What is bought';
CREATE STREAM deliveries (product STRING, pieces INT, at TIMESTAMP)
  COMMENT 'What comes into the store';
CREATE STREAM meters (device STRING, occurred TIMESTAMP, sent TIMESTAMP, received TIMESTAMP, watts DECIMAL(6,1))
  SOURCE device OCCURRED occurred SENT sent RECEIVED received
  COMMENT 'Meters of the shop; the clock of one is an hour off';

-- What is: tables, whose rows change and go.

CREATE TABLE profiles (visitor BIGINT PRIMARY KEY, plan STRING, since TIMESTAMP)
  EVENT TIME since COMMENT 'Who visitors are; they change their plans';
CREATE TABLE tax_rates (country STRING PRIMARY KEY, percent DECIMAL(4,1), since TIMESTAMP)
  EVENT TIME since COMMENT 'Taxes, which change while the shop sells';
CREATE TABLE sales (id BIGINT PRIMARY KEY, product STRING, pieces INT)
  COMMENT 'What is sold and not returned: a return deletes its row';
CREATE TABLE posts (id BIGINT PRIMARY KEY, author BIGINT, text STRING, at TIMESTAMP)
  COMMENT 'What people write, and delete';
CREATE TABLE follows (follower BIGINT, author BIGINT, PRIMARY KEY (follower, author))
  COMMENT 'Who reads whom';

-- What people look at: views, kept up to date by what changes.

CREATE MATERIALIZED VIEW click_through
  COMMENT 'How many searches led to a click within an hour: two streams joined by time'
  AS SELECT window(s.at, '10 minutes') AS window, count(*) AS searches, count(c.search) AS clicked,
       round(100 * count(c.search) / count(*), 1) AS percent
  FROM searches s LEFT JOIN (SELECT search, min(at) AS at FROM clicks GROUP BY search) c
    ON c.search = s.id AND c.at BETWEEN s.at AND s.at + INTERVAL 1 HOUR
  GROUP BY window(s.at, '10 minutes');

CREATE MATERIALIZED VIEW plans
  COMMENT 'Requests by the plan that a visitor had at that moment, not by the one of today'
  AS SELECT window(r.at, '10 minutes') AS window, p.plan, count(*) AS requests
  FROM requests r JOIN profiles FOR SYSTEM_TIME AS OF r.at AS p ON p.visitor = r.visitor
  GROUP BY window(r.at, '10 minutes'), p.plan;

CREATE MATERIALIZED VIEW invoices KEY (id)
  COMMENT 'Each order with the tax rate of its time, and which version of the rate that was'
  AS SELECT o.id, o.country, o.amount, t.percent, round(o.amount * t.percent / 100, 2) AS tax, t._version AS rate
  FROM orders o JOIN tax_rates FOR SYSTEM_TIME AS OF o.at AS t ON t.country = o.country;

CREATE MATERIALIZED VIEW timelines
  COMMENT 'The ten latest posts of everybody one follows; a follow brings posts, an unfollow and a delete take them away'
  AS SELECT follower, place, author, text, at FROM (
    SELECT f.follower, p.author, p.text, p.at,
      row_number() OVER (PARTITION BY f.follower ORDER BY p.at DESC, p.id DESC) AS place
    FROM posts p JOIN follows f ON f.author = p.author) WHERE place <= 10;

CREATE MATERIALIZED VIEW request_rate
  COMMENT 'Requests per second, by the time at which they were made: no spike after the processor has paused'
  AS SELECT window(at, '1 minute') AS window, round(count(*) / 60, 2) AS per_second FROM requests GROUP BY 1;

CREATE MATERIALIZED VIEW slow_pages
  COMMENT 'The average of the last five minutes before each request that took long'
  AS SELECT * FROM (
    SELECT page, at, milliseconds, round(avg(milliseconds) OVER (
      PARTITION BY page ORDER BY at RANGE BETWEEN INTERVAL 5 MINUTES PRECEDING AND CURRENT ROW), 1) AS of_five_minutes
    FROM requests) WHERE milliseconds > 900;

CREATE MATERIALIZED VIEW carts
  COMMENT 'What is in the carts'
  AS SELECT visitor, product, sum(pieces) AS pieces FROM cart_changes GROUP BY visitor, product HAVING sum(pieces) > 0;

CREATE MATERIALIZED VIEW considered
  COMMENT 'What was in a cart and taken out again: the log has kept both'
  AS SELECT product, count_if(pieces > 0) AS put_in, count_if(pieces < 0) AS taken_out FROM cart_changes GROUP BY product;

CREATE MATERIALIZED VIEW revenue
  COMMENT 'Revenue by the minute; stragglers correct it'
  AS SELECT window(at, '1 minute') AS window, sum(amount) AS revenue, count(*) AS orders FROM orders GROUP BY 1;

CREATE MATERIALIZED VIEW trending
  COMMENT 'The three products that were opened most in ten minutes, every two minutes'
  AS SELECT * FROM (
    SELECT *, row_number() OVER (PARTITION BY window ORDER BY clicks DESC, product) AS place FROM (
      SELECT window(at, '10 minutes', '2 minutes') AS window, product, count(*) AS clicks FROM clicks GROUP BY 1, 2))
  WHERE place <= 3;

CREATE MATERIALIZED VIEW visits
  COMMENT 'Visits: requests of a visitor with less than ten minutes in between'
  AS SELECT visitor, session_window(at, '10 minutes') AS visit, count(*) AS requests FROM requests GROUP BY 1, 2;

CREATE MATERIALIZED VIEW stock
  COMMENT 'What is in store: deliveries less sales; a return gives its pieces back'
  AS SELECT product, sum(pieces) AS pieces FROM (
    SELECT product, pieces FROM deliveries UNION ALL SELECT product, -pieces FROM sales) GROUP BY product;

CREATE MATERIALIZED VIEW visitors
  COMMENT 'Different visitors, counted exactly and estimated by a sketch of a few kilobytes'
  AS SELECT e.window, e.exact, s.estimate FROM
    (SELECT window(at, '10 minutes') AS window, count(DISTINCT visitor) AS exact FROM requests GROUP BY 1) e JOIN
    (SELECT window(at, '10 minutes') AS window, hll_sketch_estimate(hll_sketch_agg(visitor)) AS estimate
     FROM requests GROUP BY 1) s ON e.window = s.window;

CREATE MATERIALIZED VIEW energy
  COMMENT 'Watts of all meters by the minute, by their clocks as they are and as Evert corrects them'
  AS SELECT window(corrected_time, '1 minute') AS window, round(avg(watts), 1) AS watts, count(*) AS readings,
       count_if(abs(unix_micros(corrected_time) - unix_micros(occurred)) > 60000000) AS corrected
  FROM meters GROUP BY 1;
