// Where the nodes of the graph are drawn, and the ways of its edges. A node is `{id, reads}`.

const GAP = 13;
const PORT = 6;
const BEND = 14;
const LANE = 13;

const edgesOf = (nodes) => nodes.flatMap((node) => node.reads.map((from) => ({ from, to: node.id })));

/** The layer of each node: one more than that of what it reads. */
function depthsOf(nodes) {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const depths = new Map();
  const depth = (id) => {
    if (!depths.has(id)) depths.set(id, Math.max(-1, ...byId.get(id).reads.map(depth)) + 1);
    return depths.get(id);
  };
  nodes.forEach((node) => depth(node.id));
  return depths;
}

const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;

/** Slots by layer: one for each node, and a bend for each layer that an edge passes; chains say how edges go. */
function slotsOf(nodes, height) {
  const depths = depthsOf(nodes);
  const layers = Array.from({ length: Math.max(...depths.values()) + 1 }, () => []);
  const slots = new Map();
  const slot = (layer, tall) => {
    const one = { layer, tall, near: { before: [], after: [] }, y: 0 };
    layers[layer].push(one);
    return one;
  };
  for (const { id } of nodes) slots.set(id, slot(depths.get(id), height));
  const chains = edgesOf(nodes).map(({ from, to }) => {
    const chain = [slots.get(from)];
    for (let layer = depths.get(from) + 1; layer < depths.get(to); layer += 1) chain.push(slot(layer, BEND));
    chain.push(slots.get(to));
    chain.slice(1).forEach((next, index) => {
      chain[index].near.after.push(next);
      next.near.before.push(chain[index]);
    });
    return { from, to, chain };
  });
  return { layers, slots, chains };
}

/** Puts slots under each other, as near to their wishes as their order allows. */
function settle(layer, wishes) {
  let edge = -Infinity;
  layer.forEach((one, index) => {
    one.y = Math.max(wishes[index], edge + one.tall / 2);
    edge = one.y + one.tall / 2 + GAP;
  });
  const over = mean(layer.map((one, index) => one.y - wishes[index]));
  layer.forEach((one) => (one.y -= over));
}

function arrange(layers) {
  const stack = (layer) =>
    settle(
      layer,
      layer.map(() => 0),
    );
  layers.forEach(stack);
  for (let round = 0; round < 8; round += 1) {
    const side = round % 2 ? "after" : "before";
    for (const layer of round % 2 ? layers.toReversed() : layers) {
      const wish = new Map(
        layer.map((one) => [one, one.near[side].length ? mean(one.near[side].map((other) => other.y)) : one.y]),
      );
      if (round < 6) layer.sort((a, b) => wish.get(a) - wish.get(b));
      settle(
        layer,
        layer.map((one) => wish.get(one)),
      );
    }
  }
}

/** Moves up what is below a band where no layer has anything. */
function tighten(layers) {
  const slots = layers.flat().toSorted((a, b) => a.y - a.tall / 2 - (b.y - b.tall / 2));
  let bottom = slots[0].y;
  let up = 0;
  for (const one of slots) {
    up += Math.max(0, one.y - one.tall / 2 - bottom - 2 * GAP);
    bottom = Math.max(bottom, one.y + one.tall / 2);
    one.y -= up;
  }
}

/** Where an edge leaves or enters a slot: they do not all share one point. */
function port(one, side, other) {
  const sorted = one.near[side].toSorted((a, b) => a.y - b.y);
  const step = Math.min(PORT, (one.tall * 0.6) / sorted.length);
  return one.y + (sorted.indexOf(other) - (sorted.length - 1) / 2) * step;
}

/** Layers from left to right: `{width, height, places, edges}`; places have `x`, `y`, `width`, edges a way `d`. */
export function layered(nodes, { width: room, height, least, most }) {
  const { layers, slots, chains } = slotsOf(nodes, height);
  arrange(layers);
  tighten(layers);
  const between = Math.min(110, Math.max(48, room * 0.07));
  const width = Math.min(most, Math.max(least, (room - (layers.length - 1) * between) / layers.length));
  const stretched =
    layers.length > 1
      ? Math.min(180, Math.max(between, (room - layers.length * width) / (layers.length - 1)))
      : 0;
  const top = Math.min(...layers.flat().map((one) => one.y - one.tall / 2));
  const bottom = Math.max(...layers.flat().map((one) => one.y + one.tall / 2));
  const left = (one) => one.layer * (width + stretched);
  const way = (chain) =>
    chain.slice(1).reduce(
      (d, next, index) => {
        const one = chain[index];
        const [x1, x2] = [left(one) + width, left(next)];
        const [y1, y2] = [port(one, "after", next) - top, port(next, "before", one) - top];
        const pull = (x2 - x1) / 2;
        const curve = `C${x1 + pull} ${y1} ${x2 - pull} ${y2} ${x2} ${y2}`;
        return `${d}${curve}${index + 2 < chain.length ? `H${x2 + width}` : ""}`;
      },
      `M${left(chain[0]) + width} ${port(chain[0], "after", chain[1]) - top}`,
    );
  return {
    width: layers.length * width + (layers.length - 1) * stretched,
    height: bottom - top,
    places: new Map([...slots].map(([id, one]) => [id, { x: left(one), y: one.y - top - height / 2, width }])),
    edges: chains.map(({ from, to, chain }) => ({ from, to, d: way(chain) })),
  };
}

/** For narrow screens: one node under the other, and a lane at their left for the edges of each node. */
export function listed(nodes, { width: room, height }) {
  const depths = depthsOf(nodes);
  const order = [...nodes].sort((a, b) => depths.get(a.id) - depths.get(b.id)).map((node) => node.id);
  const middle = (id) => order.indexOf(id) * (height + GAP) + height / 2;
  const edges = edgesOf(nodes);
  const busyUntil = [];
  const lanes = new Map();
  for (const id of order) {
    const ends = edges.filter((edge) => edge.from === id).map((edge) => middle(edge.to));
    if (!ends.length) continue;
    const free = busyUntil.findIndex((end) => end < middle(id));
    lanes.set(id, free === -1 ? busyUntil.length : free);
    busyUntil[lanes.get(id)] = Math.max(...ends);
  }
  const left = busyUntil.length * LANE + 10;
  const way = ({ from, to }) => {
    const x = left - 12 - lanes.get(from) * LANE;
    const [y1, y2] = [middle(from) + 6, middle(to) - 6];
    return `M${left} ${y1}H${x + 6}Q${x} ${y1} ${x} ${y1 + 6}V${y2 - 6}Q${x} ${y2} ${x + 6} ${y2}H${left}`;
  };
  return {
    width: room,
    height: order.length * (height + GAP) - GAP,
    places: new Map(order.map((id) => [id, { x: left, y: middle(id) - height / 2, width: room - left }])),
    edges: edges.map((edge) => ({ ...edge, d: way(edge) })),
  };
}
