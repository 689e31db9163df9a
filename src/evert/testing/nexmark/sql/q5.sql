-- Hot items: the auctions with the most bids of each ten seconds, every two seconds.
SELECT AuctionBids.auction, AuctionBids.num
FROM (SELECT auction, count(*) AS num, window.start AS starttime, window.end AS endtime
      FROM bid GROUP BY auction, window(dateTime, '10 seconds', '2 seconds')) AS AuctionBids
JOIN (SELECT max(num) AS maxn, starttime, endtime
      FROM (SELECT count(*) AS num, window.start AS starttime, window.end AS endtime
            FROM bid GROUP BY auction, window(dateTime, '10 seconds', '2 seconds')) AS CountBids
      GROUP BY starttime, endtime) AS MaxBids
  ON AuctionBids.starttime = MaxBids.starttime AND AuctionBids.endtime = MaxBids.endtime AND AuctionBids.num >= MaxBids.maxn
