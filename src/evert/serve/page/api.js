// Talks to the server: JSON requests, and server-sent events that come back by themselves.

const SILENCE = 40_000;
const HIDDEN = 15_000;
const LONGEST_PAUSE = 5_000;

/** The server said no: `code`, `message` and `hint` are its own words. */
class Refused extends Error {
  constructor(status, body) {
    super(body.message ?? `The server answered ${status}.`);
    this.status = status;
    this.code = body.error ?? "error";
    this.hint = body.hint ?? null;
  }
}

const unauthorized = new Set();

export function whenUnauthorized(listener) {
  unauthorized.add(listener);
}

export const token = {
  get: () => sessionStorage.getItem("evert.token"),
  set: (value) => sessionStorage.setItem("evert.token", value),
};

async function send(path, options = {}) {
  const headers = { ...options.headers };
  if (token.get()) headers.Authorization = `Bearer ${token.get()}`;
  const response = await fetch(path, { ...options, headers, cache: "no-store" });
  if (response.ok) return response;
  const refused = new Refused(response.status, await response.json().catch(() => ({})));
  if (response.status === 401) unauthorized.forEach((listener) => listener(refused));
  throw refused;
}

export async function get(path, options) {
  return (await send(path, options)).json();
}

export async function post(path, body, options = {}) {
  const headers = { "Content-Type": "application/json" };
  return (await send(path, { ...options, method: "POST", headers, body: JSON.stringify(body) })).json();
}

export const viewPath = (name) => `/views/${encodeURIComponent(name)}`;

/** The events in a body, as `{event, data, id}`; `alive` is called for whatever comes. */
async function* events(body, alive) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let event = { event: "message", data: "", id: null };
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    alive();
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines.map((text) => text.replace(/\r$/, ""))) {
      if (line === "") {
        if (event.data) yield { ...event, data: JSON.parse(event.data) };
        event = { event: "message", data: "", id: null };
        continue;
      }
      const [, field, text] = /^([^:]*):? ?(.*)$/.exec(line);
      if (field === "data") event.data += (event.data && "\n") + text;
      else if (field === "event" || field === "id") event[field] = text;
    }
  }
}

const until = (target, type, holds) =>
  new Promise((resolve) => {
    const look = () => {
      if (!holds()) return;
      target.removeEventListener(type, look);
      resolve();
    };
    target.addEventListener(type, look);
    look();
  });

const pause = (milliseconds) =>
  new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      window.removeEventListener("online", end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    window.addEventListener("online", end);
  });

/**
 * Follows a stream of server-sent events until the function that it gives is called. A stream that breaks is opened
 * again, later each time, and goes on behind the last event. A page that nobody sees holds no connection: browsers
 * have few of them for one server.
 */
export function stream(path, { opened = () => {}, event, lost = () => {} }) {
  let ended = false;
  let connection = null;
  let hiding = null;

  const hide = () => {
    clearTimeout(hiding);
    if (document.hidden) hiding = setTimeout(() => connection?.abort(), HIDDEN);
  };

  async function follow() {
    let last = null;
    let failures = 0;
    while (!ended) {
      await until(document, "visibilitychange", () => !document.hidden);
      connection = new AbortController();
      const abort = () => connection.abort();
      let watchdog = setTimeout(abort, SILENCE);
      const alive = () => {
        clearTimeout(watchdog);
        watchdog = setTimeout(abort, SILENCE);
      };
      try {
        const headers = { Accept: "text/event-stream", ...(last === null ? {} : { "Last-Event-ID": last }) };
        const response = await send(path, { headers, signal: connection.signal });
        opened();
        for await (const one of events(response.body, alive)) {
          if (ended) return;
          failures = 0;
          last = one.id ?? last;
          event(one.event, one.data);
        }
        throw new Error("The server closed the connection.");
      } catch (error) {
        if (ended || error.status === 401) return;
        lost(error);
      } finally {
        clearTimeout(watchdog);
        connection.abort();
      }
      if (!document.hidden) await pause(Math.min(LONGEST_PAUSE, 250 * 2 ** failures++));
    }
  }

  document.addEventListener("visibilitychange", hide);
  follow();
  return () => {
    ended = true;
    clearTimeout(hiding);
    document.removeEventListener("visibilitychange", hide);
    connection?.abort();
  };
}
