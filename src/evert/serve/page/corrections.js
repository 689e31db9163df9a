// Tells which changed rows are corrections. The server counts the late events that changed a view; when that count
// rises, what changed just then in windows shown before is marked for a while.

import { spanOf } from "./columns.js";

const LASTS = 20_000;
const RECENT = 3_000;
const SETTLE = 700;
const OWED = 5_000;

export function corrector(time, found) {
  const marks = new Map();
  let recent = [];
  let counted = null;
  let passed = null;
  let owedUntil = 0;

  /** First windows that the watermark has passed, then older ones; if only the newest changed, it was that. */
  function choose() {
    const now = performance.now();
    recent = recent.filter((entry) => now - entry.when < RECENT);
    const choices = [
      recent.filter((entry) => entry.end && entry.end <= passed),
      recent.filter((entry) => !entry.newest),
      recent,
    ];
    const chosen = choices.find((some) => some.length) ?? [];
    if (now > owedUntil || !chosen.length) return;
    owedUntil = 0;
    recent = [];
    for (const { id, before } of chosen) marks.set(id, { before, until: now + LASTS });
    found();
  }

  return {
    /** Present marks: id → `{before}`, the row as it was. */
    marks() {
      const now = performance.now();
      for (const [id, mark] of marks) if (mark.until < now) marks.delete(id);
      return marks;
    },

    changed(changes, rows) {
      if (!time || !changes.size) return;
      const starts = [...rows.values()].map((row) => spanOf(row, time)?.start ?? -Infinity);
      const newest = starts.reduce((a, b) => Math.max(a, b), -Infinity);
      const when = performance.now();
      for (const [id, { before, row }] of changes) {
        const span = spanOf(row, time);
        if (span) recent.push({ id, before, end: span.end, newest: span.start >= newest, when });
      }
      if (owedUntil) setTimeout(choose, SETTLE);
    },

    count(corrections, watermark) {
      passed = watermark;
      if (counted !== null && corrections > counted) {
        owedUntil = performance.now() + OWED;
        setTimeout(choose, SETTLE);
      }
      counted = corrections;
    },
  };
}
