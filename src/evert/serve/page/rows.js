// The rows of a view: a bag of them that changes are applied to, their identity, difference and order.

import { isNumeric, isWindow } from "./columns.js";

/** Rows, each as often as it counts. */
export class Bag {
  entries = new Map();

  add(rows) {
    for (const row of rows) {
      const text = JSON.stringify(row);
      const entry = this.entries.get(text);
      if (entry) entry.times += 1;
      else this.entries.set(text, { row, times: 1 });
    }
  }

  remove(rows) {
    for (const row of rows) {
      const text = JSON.stringify(row);
      const entry = this.entries.get(text);
      if (entry?.times > 1) entry.times -= 1;
      else this.entries.delete(text);
    }
  }

  rows() {
    return [...this.entries.values()].flatMap(({ row, times }) =>
      times === 1 ? [row] : Array(times).fill(row),
    );
  }
}

/** Rows by what identifies them: the key; or, where there is none, all that is in them. */
export function identified(rows, key) {
  const byId = new Map();
  for (const row of rows) {
    const id = JSON.stringify(key ? key.map((name) => row[name]) : row);
    let unique = id;
    for (let n = 2; byId.has(unique); n += 1) unique = `${id} ${n}`;
    byId.set(unique, row);
  }
  return byId;
}

/** The difference of two maps of rows: ids that came, `{before, row}` of those that changed, rows that went. */
export function difference(before, after) {
  const change = { added: new Set(), changed: new Map(), gone: new Map() };
  for (const [id, row] of after) {
    const old = before.get(id);
    if (!old) change.added.add(id);
    else if (old !== row && JSON.stringify(old) !== JSON.stringify(row))
      change.changed.set(id, { before: old, row });
  }
  for (const [id, row] of before) if (!after.has(id)) change.gone.set(id, row);
  return change;
}

function comparable(value, type) {
  if (value === null || value === undefined) return null;
  if (isNumeric(type)) return Number(value);
  if (isWindow(type)) return value.start;
  return typeof value === "object" ? JSON.stringify(value) : value;
}

const compare = (a, b) => {
  if (a === b) return 0;
  if (a === null || b === null) return a === null ? -1 : 1;
  return a < b ? -1 : 1;
};

/** `[id, row]` in the order of a column, and within that of the others. */
export function ordered(byId, columns, order) {
  const first = columns.filter((column) => column.name === order.column);
  const others = columns.filter((column) => column.name !== order.column);
  const sign = order.down ? -1 : 1;
  const keys = (row, some) => some.map((column) => comparable(row[column.name], column.type));
  return [...byId]
    .map(([id, row]) => ({ id, row, first: keys(row, first), others: keys(row, others) }))
    .sort((a, b) => {
      const found = sign * compare(a.first[0] ?? null, b.first[0] ?? null);
      return found || a.others.reduce((sum, value, index) => sum || compare(value, b.others[index]), 0);
    })
    .map(({ id, row }) => [id, row]);
}
