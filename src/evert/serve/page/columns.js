// What the columns of a view are for: numbers, windows, times, keys, and the order that rows are best shown in.

const NAMES_OF_TIMES =
  /^(at|time|ts|second|minute|hour|day|bucket|start|(.*_)?(start|start_?time|at|minute|hour))$/i;
const NAMES_OF_ENDS = /^((.*_)?(end|end_?time))$/i;

export const isNumeric = (type) =>
  /^(TINYINT|SMALLINT|INT|INTEGER|BIGINT|FLOAT|REAL|DOUBLE|DECIMAL|NUMERIC)\b/i.test(type);

export const isWindow = (type) =>
  /^STRUCT<\s*start\s*:?\s*TIMESTAMP\w*[^,]*,\s*end\s*:?\s*TIMESTAMP\w*[^,]*>$/i.test(type);

const isTime = (type) => /^(TIMESTAMP|DATE)/i.test(type);

/** Milliseconds of a time in JSON; a time without a zone is one in UTC. */
export const millis = (text) =>
  Date.parse(/[Zz]|[+-]\d\d:\d\d$/.test(text) || !text.includes("T") ? text : `${text}Z`);

/** The columns that say which time a row is about, `{start, end, struct}`, or null. */
export function timeOf(columns) {
  const window = columns.find((column) => isWindow(column.type));
  if (window) return { start: window.name, end: null, struct: true };
  const times = columns.filter((column) => isTime(column.type));
  const start = times.find((column) => NAMES_OF_TIMES.test(column.name));
  if (!start) return null;
  const end = times.find((column) => NAMES_OF_ENDS.test(column.name));
  return { start: start.name, end: end?.name ?? null, struct: false };
}

/** The time a row is about, `{start, end}` in milliseconds; null if it has none. Nothing may say the `end`. */
export function spanOf(row, time) {
  const [start, end] = time.struct
    ? [row[time.start]?.start, row[time.start]?.end]
    : [row[time.start], time.end && row[time.end]];
  return start ? { start: millis(start), end: end ? millis(end) : null } : null;
}

/** Newest windows first; else the largest numbers; else by the first column. */
export function orderOf(columns, key) {
  const time = timeOf(columns);
  if (time) return { column: time.start, down: true };
  const number = key && columns.find((column) => isNumeric(column.type) && !key.includes(column.name));
  return number ? { column: number.name, down: true } : { column: columns[0]?.name, down: false };
}
