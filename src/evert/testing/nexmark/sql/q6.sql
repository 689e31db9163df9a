-- Average price of a seller's last winning bids.
SELECT seller, AVG(price) OVER (PARTITION BY seller ORDER BY dateTime, id ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS avg_price
FROM (SELECT id, seller, price, dateTime,
             ROW_NUMBER() OVER (PARTITION BY id, seller ORDER BY price DESC, dateTime ASC) AS rownum
      FROM (SELECT A.id, A.seller, B.price, B.dateTime FROM auction A, bid B
            WHERE A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires) J) Q
WHERE rownum <= 1
