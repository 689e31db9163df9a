// The rows of a view as they change: small views by their feed of changes, large ones by looking again.

import { get, stream, viewPath } from "./api.js";
import { difference, identified, Bag } from "./rows.js";
import { orderText } from "./sql.js";
import { follow, state } from "./state.js";

const FOLLOWED = 5_000;
const SHORTEST = 1_000;
const GATHER = 120;

/**
 * Reads up to `limit` rows of a view, and again whenever it has moved, but not more often than once a second.
 * `wanted` may say that nobody looks.
 */
export function polled(name, { limit, order, wanted = () => true }, receive, fail) {
  let at = null;
  let wish = 0;
  let resting = false;
  let ended = false;

  async function look() {
    const view = state.views.get(name);
    const news = view && view.position !== at && state.connection === "live";
    if (resting || ended || !news || !wanted()) return;
    resting = true;
    const mine = wish;
    try {
      const by = order() && { order: orderText(order(), view.columns) };
      const query = new URLSearchParams({ limit, ...by });
      const answer = await get(`${viewPath(name)}?${query}`);
      at = mine === wish ? view.position : null;
      if (!ended) receive({ ...answer, total: answer.total ?? view.rows });
    } catch (error) {
      if (error.status) at = view.position;
      if (!ended) fail(error);
    }
    setTimeout(() => {
      resting = false;
      look();
    }, SHORTEST);
  }

  const unfollow = follow(look);
  look();
  return {
    again: () => {
      at = null;
      wish += 1;
      look();
    },
    close: () => {
      ended = true;
      unfollow();
    },
  };
}

/** Follows the changes of a view; `receive` gets all its rows, some changes at a time. */
function followed(name, receive, fail) {
  let bag = null;
  let coming = null;
  let changes = { rows: [], gone: [] };
  let position = null;
  let timer = null;

  /** Of what came in several events, those of a connection that broke come again. */
  const forget = () => {
    coming = null;
    changes = { rows: [], gone: [] };
  };

  const tell = () => {
    timer ??= setTimeout(() => {
      timer = null;
      const rows = bag.rows();
      receive({ rows, position, total: rows.length });
    }, GATHER);
  };

  const handlers = {
    snapshot(data) {
      coming ??= new Bag();
      coming.add(data.rows);
      if (data.more) return;
      [bag, coming] = [coming, null];
      tell();
    },
    delta(data) {
      changes.rows.push(...data.rows);
      changes.gone.push(...data.gone);
      if (data.more) return;
      bag ??= new Bag();
      bag.remove(changes.gone);
      bag.add(changes.rows);
      forget();
      tell();
    },
    reset: forget,
    error: (data) => fail({ ...data, status: 500 }),
  };

  const end = stream(`${viewPath(name)}/changes`, {
    opened: forget,
    event: (kind, data) => {
      position = data.position ?? position;
      handlers[kind]?.(data);
    },
    lost: fail,
  });
  return () => {
    clearTimeout(timer);
    end();
  };
}

/**
 * The rows of a view, live. `receive({rows, change, position, total})` has rows by id and what is different to the
 * last time; `order` is asked where the server has to choose which rows of a large view come.
 */
export function feed(view, { key, limit, order }, { receive, fail }) {
  let before = null;
  const take = ({ rows, position, total }) => {
    const byId = identified(rows, key);
    const change = difference(before ?? byId, byId);
    before = byId;
    receive({ rows: byId, change, position, total: total ?? rows.length });
  };
  if (view.rows > FOLLOWED) return polled(view.name, { limit, order }, take, fail);
  return { again: () => {}, close: followed(view.name, take, fail) };
}
