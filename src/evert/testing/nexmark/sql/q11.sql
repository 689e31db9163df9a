-- How many bids a bidder made in each session.
SELECT bidder, count(*) AS bid_count, session_window.start AS starttime, session_window.end AS endtime
FROM bid GROUP BY bidder, session_window(dateTime, '10 seconds')
