-- The highest bids of each ten seconds.
SELECT B.auction, B.price, B.bidder, B.dateTime, B.extra
FROM bid B
JOIN (SELECT MAX(price) AS maxprice, window.end AS dateTime FROM bid GROUP BY window(dateTime, '10 seconds')) B1
  ON B.price = B1.maxprice
WHERE B.dateTime BETWEEN B1.dateTime - INTERVAL '10' SECOND AND B1.dateTime
