// What a chart shows, as numbers that can be halfway between two states.

import { roundValues } from "./scale.js";

/** Where a point of a line is: in the middle of its window. */
export const middle = (point) => (point.start + point.end) / 2;

/** What the chart is to show in the end: the ends of both axes and the value of each point. */
export function goalOf(model, mini) {
  const points = model.series.flatMap((line) => line.points);
  const values = points.map((point) => point.y);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const fromZero = model.bars || least <= 0 || most - least > 0.25 * most;
  const [low, high] = fromZero ? [Math.min(0, least), Math.max(0, most)] : [least, most];
  const round = roundValues(low, high, 5);
  const times = points.flatMap((point) =>
    model.bars ? [point.start, point.start + model.step] : [middle(point)],
  );
  return {
    from: Math.min(...times),
    to: Math.max(...times),
    low: mini ? low : round.low,
    high: mini ? high : round.high,
    ticks: mini ? [] : round.ticks,
    values: new Map(points.map((point) => [point.id, point.y])),
  };
}

/** Between two states; a bar that is new grows from zero, a point of a line comes in from the side. */
export function between(start, goal, part, bars) {
  const mix = (a, b) => a + (b - a) * part;
  const values = new Map();
  for (const [id, value] of goal.values) values.set(id, mix(start.values.get(id) ?? (bars ? 0 : value), value));
  const ends = ["from", "to", "low", "high"].map((name) => [name, mix(start[name], goal[name])]);
  return { ...goal, ...Object.fromEntries(ends), values };
}
