// What the server last said about topics and views, and what follows from its differences over time.

import { stream } from "./api.js";

const WINDOW = 5_000;
const REMEMBERED = 120;
const FLOWING = 1_800;
const TIMELESS = { watermark: null, late: 0, dropped: 0, sources: 0, idle: 0, rising: false };

/** How fast a counter rises: its growth in the last five seconds. */
class Meter {
  samples = [];
  history = [];

  add(time, value) {
    const last = this.samples.at(-1)?.value;
    if (value < last) this.samples = [];
    if (value !== last) this.samples.push({ time, value });
  }

  rate(now) {
    while (this.samples.length > 1 && this.samples[1].time <= now - WINDOW) this.samples.shift();
    const [first] = this.samples;
    const seconds = Math.max(1_000, Math.min(WINDOW, now - first.time)) / 1_000;
    return Math.max(0, this.samples.at(-1).value - first.value) / seconds;
  }

  remember(now) {
    this.history.push({ time: Date.now(), rate: this.rate(now) });
    if (this.history.length > REMEMBERED) this.history.shift();
  }
}

export const state = {
  connection: "connecting",
  refused: null,
  status: null,
  topics: new Map(),
  views: new Map(),
  replacements: new Map(),
};

const listeners = new Set();
const meters = new Map();
const moved = new Map();
let skew = 0;

/** Calls `listener` whenever the status changes, and every second; gives a function that ends it. */
export function follow(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const notify = () => listeners.forEach((listener) => listener());

function receive(status) {
  const time = performance.now();
  for (const topic of status.topics) {
    if (!meters.has(topic.name)) meters.set(topic.name, new Meter());
    meters.get(topic.name).add(time, topic.appended);
    if (topic.appended > (state.topics.get(topic.name)?.appended ?? Infinity)) moved.set(topic.name, time);
  }
  for (const view of status.views) {
    const before = state.views.get(view.name);
    if (before && !view.replacing && view.position > before.position && view.changed > 0)
      moved.set(view.name, time);
  }
  skew = Date.parse(status.now) - Date.now();
  state.status = status;
  state.topics = new Map(status.topics.map((topic) => [topic.name, { ...TIMELESS, ...topic }]));
  state.views = new Map(status.views.filter((view) => !view.replacing).map((view) => [view.name, view]));
  state.replacements = new Map(status.views.filter((view) => view.replacing).map((view) => [view.name, view]));
  connection("live");
}

function connection(value) {
  state.connection = value;
  notify();
}

export function start() {
  stream("/status/changes", {
    event: (name, data) => name === "status" && receive(data),
    lost: (error) => {
      state.refused = error.status ? error : null;
      connection("reconnecting");
    },
  });
  setInterval(() => {
    const now = performance.now();
    if (state.connection === "live") meters.forEach((meter) => meter.remember(now));
    notify();
  }, 1_000);
}

/** Rows a second that come into a topic. */
export const rate = (topic) => meters.get(topic)?.rate(performance.now()) ?? 0;

/** The rates of a topic since the page was opened, a value a second. */
export const rates = (topic) => meters.get(topic)?.history ?? [];

/** Whether a topic or view has just changed. */
export const flows = (name) => performance.now() - (moved.get(name) ?? -Infinity) < FLOWING;

/** The time of the server, in milliseconds. */
export const serverNow = () => Date.now() + skew;

/** What a view reads, as names of topics and views; the versions of a table are the table. */
export function readsOf(view) {
  const known = (name) => state.topics.has(name) || state.views.has(name);
  const names = view.reads.map((name) => (known(name) ? name : name.replace(/\.versions$/, "")));
  return [...new Set(names)].filter((name) => known(name) && name !== view.name);
}

export const readersOf = (name) => [...state.views.values()].filter((view) => readsOf(view).includes(name));

/** How far the streams under a view are, all of them: milliseconds, or null where none says. */
export function watermarkOf(view) {
  const marks = readsOf(view).map((name) => {
    if (state.views.has(name)) return watermarkOf(state.views.get(name));
    const mark = state.topics.get(name).watermark;
    return mark === null ? null : Date.parse(mark);
  });
  const told = marks.filter((mark) => mark !== null);
  return told.length ? Math.min(...told) : null;
}
