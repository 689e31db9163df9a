-- Session windows: events that follow each other closely are one session, whatever order they come in.
CREATE STREAM taps (user STRING, at TIMESTAMP);

CREATE MATERIALIZED VIEW sessions AS
SELECT user, session_window.start AS start, session_window.end AS end, count(*) AS taps
FROM taps GROUP BY user, session_window(at, '10 seconds');
-- view of user, start, end, taps [n1, incremental]
--   compute start, end
--     aggregate count(1) by user, session_window [n0, incremental]
--       compute session_window
--         filter (taps.at IS NOT NULL)
--           stream taps

-- epoch: two sessions of ann
-- > taps +1 ["ann", "2026-01-01T00:00:00Z"]
-- > taps +1 ["ann", "2026-01-01T00:00:15Z"]
-- > taps +1 ["bob", "2026-01-01T00:00:05Z"]
-- < sessions +1 ["ann", "2026-01-01 00:00:00+00:00", "2026-01-01 00:00:10+00:00", 1]
-- < sessions +1 ["ann", "2026-01-01 00:00:15+00:00", "2026-01-01 00:00:25+00:00", 1]
-- < sessions +1 ["bob", "2026-01-01 00:00:05+00:00", "2026-01-01 00:00:15+00:00", 1]

-- epoch: a tap between them makes them one
-- > taps +1 ["ann", "2026-01-01T00:00:08Z"]
-- < sessions -1 ["ann", "2026-01-01 00:00:00+00:00", "2026-01-01 00:00:10+00:00", 1]
-- < sessions +1 ["ann", "2026-01-01 00:00:00+00:00", "2026-01-01 00:00:25+00:00", 3]
-- < sessions -1 ["ann", "2026-01-01 00:00:15+00:00", "2026-01-01 00:00:25+00:00", 1]

-- epoch: a tap of bob's does nothing to ann
-- > taps +1 ["bob", "2026-01-01T01:00:00Z"]
-- < sessions +1 ["bob", "2026-01-01 01:00:00+00:00", "2026-01-01 01:00:10+00:00", 1]
