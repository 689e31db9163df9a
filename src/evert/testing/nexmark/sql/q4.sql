-- Average closing price of each category. The average is cut to an integer, as Flink does.
SELECT Q.category, CAST(FLOOR(AVG(Q.final)) AS BIGINT) AS final
FROM (SELECT MAX(B.price) AS final, A.category
      FROM auction A, bid B
      WHERE A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires
      GROUP BY A.id, A.category) Q
GROUP BY Q.category
