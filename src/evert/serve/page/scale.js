// Round values and round times for the axes of charts.

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [
  ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR),
  ...[1, 2, 7, 14, 30, 90, 365].map((n) => n * DAY),
];

/** A domain that holds `low` and `high`, with round ends, and about `n` round values in it. */
export function roundValues(low, high, n) {
  const rough = (high - low || Math.abs(high) || n) / n;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const first = Math.floor(low / step + 1e-9);
  const last = Math.max(first + 1, Math.ceil(high / step - 1e-9));
  const ticks = Array.from({ length: last - first + 1 }, (_, index) =>
    Number(((first + index) * step).toPrecision(12)),
  );
  return { low: ticks[0], high: ticks.at(-1), ticks };
}

/** At most about `n` round times between two. */
export function roundTimes(from, to, n) {
  const step = STEPS.find((one) => (to - from) / one <= n) ?? STEPS.at(-1);
  const ticks = [];
  for (let time = Math.ceil(from / step) * step; time <= to; time += step) ticks.push(time);
  return ticks.map((time) => ({ time, text: timeText(time, step) }));
}

function timeText(time, step) {
  const date = new Date(time);
  if (step >= DAY || time % DAY === 0)
    return date.toLocaleDateString("en", { day: "numeric", month: "short", timeZone: "UTC" });
  return date.toISOString().slice(11, step >= MINUTE ? 16 : 19);
}
