-- The ten highest bids of each auction.
SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC, dateTime, bidder, extra) AS rank_number FROM bid) T WHERE rank_number <= 10
