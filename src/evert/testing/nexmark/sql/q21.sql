-- The number of each bid's channel. NULLIF: without a match Flink's REGEXP_EXTRACT gives NULL, Spark's an empty text.
SELECT auction, bidder, price, channel,
       CASE WHEN lower(channel) = 'apple' THEN '0' WHEN lower(channel) = 'google' THEN '1'
            WHEN lower(channel) = 'facebook' THEN '2' WHEN lower(channel) = 'baidu' THEN '3'
            ELSE NULLIF(REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2), '') END AS channel_id
FROM bid
WHERE NULLIF(REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2), '') IS NOT NULL OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')
