-- How many bids a bidder made in each ten seconds, by the time at which they were written.
SELECT bidder, count(*) AS bid_count, window.start AS starttime, window.end AS endtime FROM bid GROUP BY bidder, window(_ingested_at, '10 seconds')
