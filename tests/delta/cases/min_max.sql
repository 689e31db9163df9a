-- Min and max over input that never retracts.
CREATE STREAM readings (sensor STRING, value DOUBLE, at DATE);

CREATE MATERIALIZED VIEW extremes AS
SELECT sensor, min(value) AS least, max(value) AS most, max(at) AS last FROM readings GROUP BY sensor;
-- view of sensor, least, most, last, key sensor [n1, incremental]
--   aggregate min(readings.value), max(readings.value), max(readings.at) by sensor [n0, incremental]
--     stream readings

CREATE MATERIALIZED VIEW extreme_of_all AS
SELECT min(sensor) AS first, max(value) AS most FROM readings;
-- view of first, most [n1, incremental]
--   aggregate min(readings.sensor), max(readings.value) [n0, incremental]
--     stream readings

-- epoch: of nothing but NULL there is no least
-- > readings +1 ["a", 1.5, "2026-01-01"]
-- > readings +1 ["b", null, null]
-- < extremes +1 ["a", 1.5, 1.5, "2026-01-01"]
-- < extremes +1 ["b", null, null, null]
-- < extreme_of_all +1 ["a", 1.5]

-- epoch: what is between changes nothing
-- > readings +1 ["a", 1.5, "2025-12-31"]

-- epoch: NaN is larger than all numbers
-- > readings +1 ["a", NaN, "2026-01-02"]
-- > readings +1 ["b", -Infinity, null]
-- > readings +1 ["A", 2.0, null]
-- < extremes +1 ["A", 2.0, 2.0, null]
-- < extremes -1 ["a", 1.5, 1.5, "2026-01-01"]
-- < extremes +1 ["a", 1.5, NaN, "2026-01-02"]
-- < extremes +1 ["b", -Infinity, -Infinity, null]
-- < extremes -1 ["b", null, null, null]
-- < extreme_of_all +1 ["A", NaN]
-- < extreme_of_all -1 ["a", 1.5]
