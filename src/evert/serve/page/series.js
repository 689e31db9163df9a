// Which views make a chart over time, and the lines or bars of it.

import { isNumeric, spanOf, timeOf } from "./columns.js";

const MOST_SERIES = 6;
const FEW_NAMES = 60;
const IDS = /^(.*_)?id$/i;

/** `{time, measures, split}`: time, numbers, and the column that tells lines apart; null if there is no chart. */
export function shapeOf(columns, key) {
  const time = timeOf(columns);
  if (!time) return null;
  const times = [time.start, time.end];
  const rest = columns.filter((column) => !times.includes(column.name));
  const splits = key
    ? key.filter((name) => !times.includes(name))
    : rest.filter((column) => /^(STRING|VARCHAR|CHAR|BOOLEAN)/i.test(column.type)).map((column) => column.name);
  const measures = rest.filter(
    ({ name, type }) => isNumeric(type) && !splits.includes(name) && !IDS.test(name),
  );
  if (splits.length > 1 || !measures.length) return null;
  return { time, measures: measures.map((column) => column.name), split: splits[0] ?? null };
}

const sum = (points) => points.reduce((total, point) => total + Math.abs(point.y), 0);

/** The step between times, if they are regular: all differences are multiples of the least. */
function stepOf(starts) {
  const gaps = starts.slice(1).map((start, index) => start - starts[index]);
  const step = Math.min(...gaps);
  return gaps.length && gaps.every((gap) => gap % step === 0) ? step : null;
}

/**
 * The newest `most` times as `{series: [{name, points}], names, starts, step, bars}`; a point has `id`, `start`,
 * `end` and `y`. Null if two rows are about the same, or if there are more lines than one can tell apart.
 */
export function seriesOf(rows, shape, measure, most) {
  const points = [];
  for (const [id, row] of rows) {
    const span = spanOf(row, shape.time);
    const y = row[measure];
    if (!span || y === null || !Number.isFinite(Number(y))) continue;
    points.push({ id, ...span, y: Number(y), name: shape.split === null ? "" : String(row[shape.split]) });
  }
  const starts = [...new Set(points.map((point) => point.start))].sort((a, b) => a - b).slice(-most);
  const step = stepOf(starts);
  const byName = new Map();
  for (const point of points.filter((one) => one.start >= starts[0])) {
    if (!byName.has(point.name)) byName.set(point.name, new Map());
    const line = byName.get(point.name);
    if (line.has(point.start)) return null;
    line.set(point.start, { ...point, end: point.end ?? point.start + (step ?? 0) });
  }
  const names = byName.size;
  if (starts.length < 2 || names > FEW_NAMES || (names > MOST_SERIES && points.length < 3 * names)) return null;
  const series = [...byName]
    .map(([name, line]) => ({ name, points: [...line.values()].sort((a, b) => a.start - b.start) }))
    .sort((a, b) => sum(b.points) - sum(a.points))
    .slice(0, MOST_SERIES);
  return { series, names, starts, step, bars: names === 1 && step !== null };
}
