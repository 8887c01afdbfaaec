// The picture of the network: pans, zooms, picks a node, finds layers by name. It draws only what is in view.
(() => {
  "use strict";
  const root = document.documentElement;
  window.addEventListener("error", event => { root.dataset.error = event.message; });
  const byId = id => document.getElementById(id);
  const data = JSON.parse(byId("report-data").textContent);
  const canvas = byId("graph"), pen = canvas.getContext("2d");
  const { width: W, height: H, rank: R } = data.box;
  const state = { view: data.first, scale: 1, dx: 0, dy: 0, picked: -1 };
  const view = () => data.views[state.view];

  // What the pictures need beside the data: neighbours, extents, and where each layer is.
  const layers = new Map();
  const entry = name => {
    if (!layers.has(name)) layers.set(name, { name, op: "", at: data.views.map(() => []) });
    return layers.get(name);
  };
  for (const [name, op] of data.model) entry(name).op = op;
  for (const node of data.views.flatMap(one => one.nodes)) {
    const text = place => data.texts[place];
    const facts = node.f.map(text);
    node.l = text(node.l);
    node.k = text(node.k);
    node.n = node.n.map(text);
    node.f = facts.flatMap((name, place) => (place % 2 ? [] : [[name, facts[place + 1]]]));
  }
  data.views.forEach((one, number) => {
    one.makers = one.nodes.map(() => []);
    one.readers = one.nodes.map(() => []);
    for (const [source, target] of one.edges) {
      one.readers[source].push(target);
      one.makers[target].push(source);
    }
    one.nodes.forEach((node, place) => {
      for (const name of node.n.length ? node.n : [node.l]) entry(name).at[number].push(place);
    });
    one.right = Math.max(...one.nodes.map(node => node.x), 0) + W / 2;
    one.bottom = Math.max(...one.nodes.map(node => node.r), 0) * R + H;
    one.slowest = Math.max(...one.nodes.map(node => node.t || 0), 0);
  });

  // The kinds that are met most often are told apart best.
  const palette = [212, 28, 135, 330, 265, 55, 178, 0, 95, 300, 235, 160];
  const counted = new Map();
  for (const node of data.views.flatMap(one => one.nodes)) counted.set(node.k, (counted.get(node.k) || 0) + 1);
  const hues = new Map([...counted].sort((a, b) => b[1] - a[1])
    .map(([kind], place) => [kind, place < palette.length ? palette[place] : (place * 137.5) % 360]));
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const fill = node => {
    const light = dark.matches ? 32 : 82;
    if (byId("colour").value === "time" && view().slowest) {
      const heat = Math.sqrt((node.t || 0) / view().slowest);
      return `hsl(${Math.round(50 - 45 * heat)} ${Math.round(20 + 70 * heat)}% ${light - Math.round(heat * (dark.matches ? -14 : 24))}%)`;
    }
    return node.k === "input" || node.k === "output" ? `hsl(0 0% ${light}%)` : `hsl(${hues.get(node.k)} 55% ${light}%)`;
  };

  // Drawing.
  const fitting = new Map();
  const clipped = (text, room) => {
    if (!fitting.has(text)) {
      let short = text;
      for (let cut = 1; pen.measureText(short).width > room && cut < text.length; cut += 1) short = `…${text.slice(cut)}`;
      fitting.set(text, short);
    }
    return fitting.get(text);
  };
  const drawEdges = (one, low, high, style) => {
    const plain = style.getPropertyValue("--edge"), strong = style.getPropertyValue("--pick");
    for (const marked of [false, true]) {
      pen.beginPath();
      for (const [source, target, bends] of one.edges) {
        if ((source === state.picked || target === state.picked) !== marked) continue;
        const a = one.nodes[source], b = one.nodes[target], end = b.r * R;
        let x = a.x, y = a.r * R + H;
        if (end < low || y > high) continue;
        pen.moveTo(x, y);
        bends.forEach((bend, number) => {
          const next = (a.r + number + 1) * R + H / 2;
          pen.bezierCurveTo(x, (y + next) / 2, bend, (y + next) / 2, bend, next);
          [x, y] = [bend, next];
        });
        pen.bezierCurveTo(x, (y + end) / 2, b.x, (y + end) / 2, b.x, end);
      }
      pen.strokeStyle = marked ? strong : plain;
      pen.lineWidth = (marked ? 2.2 : 1.3) / Math.min(1, Math.max(state.scale, 0.25));
      pen.stroke();
    }
  };
  const drawNode = (node, picked, style) => {
    const x = node.x - W / 2, y = node.r * R;
    pen.fillStyle = fill(node);
    pen.beginPath();
    pen.roundRect(x, y, W, H, 7);
    pen.fill();
    pen.strokeStyle = style.getPropertyValue(picked ? "--pick" : "--node-line");
    pen.lineWidth = picked ? 3 : 1;
    pen.stroke();
    if (state.scale < 0.3) return;
    pen.fillStyle = style.getPropertyValue("--ink");
    pen.font = "600 12px system-ui, sans-serif";
    pen.fillText(clipped(node.l, W - 14), x + 7, y + 17);
    pen.font = "11px system-ui, sans-serif";
    pen.fillText(clipped(node.t === undefined ? node.k : `${node.k} · ${node.t.toPrecision(3)} ms`, W - 14), x + 7, y + 32);
  };
  const draw = () => {
    const one = view(), ratio = window.devicePixelRatio || 1, style = getComputedStyle(root);
    const [wide, high] = [canvas.clientWidth, canvas.clientHeight];
    if (canvas.width !== Math.round(wide * ratio) || canvas.height !== Math.round(high * ratio)) {
      canvas.width = Math.round(wide * ratio);
      canvas.height = Math.round(high * ratio);
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, wide, high);
    pen.setTransform(ratio * state.scale, 0, 0, ratio * state.scale, ratio * state.dx, ratio * state.dy);
    const left = -state.dx / state.scale, top = -state.dy / state.scale;
    const right = left + wide / state.scale, bottom = top + high / state.scale;
    drawEdges(one, top, bottom, style);
    one.nodes.forEach((node, place) => {
      const y = node.r * R;
      if (y > bottom || y + H < top || node.x - W / 2 > right || node.x + W / 2 < left) return;
      drawNode(node, place === state.picked, style);
    });
  };
  let waiting = false;
  const redraw = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  };

  // Moving.
  const zoom = (factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) => {
    const scale = Math.min(3, Math.max(0.01, state.scale * factor)), change = scale / state.scale;
    Object.assign(state, { scale, dx: x - (x - state.dx) * change, dy: y - (y - state.dy) * change });
    redraw();
  };
  const home = whole => {
    const one = view(), [wide, high] = [canvas.clientWidth - 20, canvas.clientHeight - 20];
    const first = one.nodes[0] || { x: 0, r: 0 };
    state.scale = whole ? Math.min(1, wide / one.right, high / one.bottom) : Math.min(1, Math.max(0.6, wide / one.right));
    state.dx = one.right * state.scale < wide || whole ? (wide - one.right * state.scale) / 2 + 10 : wide / 2 - first.x * state.scale;
    state.dy = 10 - (whole ? 0 : first.r * R * state.scale);
    redraw();
  };
  const centre = node => {
    state.scale = Math.max(state.scale, 0.7);
    state.dx = canvas.clientWidth / 2 - node.x * state.scale;
    state.dy = canvas.clientHeight / 2 - (node.r * R + H / 2) * state.scale;
  };

  // What is known of a node.
  const make = (tag, text, parent) => {
    const element = document.createElement(tag);
    element.textContent = text;
    parent.append(element);
    return element;
  };
  const jump = (parent, number, place) => {
    const node = data.views[number].nodes[place];
    make("button", node.l, parent).addEventListener("click", () => { show(number); pick(place, true); });
  };
  const places = (list, title, number, found) => {
    if (!found.length) return;
    make("dt", title, list);
    const cell = make("dd", "", list);
    for (const place of found.slice(0, 12)) jump(cell, number, place);
    if (found.length > 12) make("span", `and ${found.length - 12} more`, cell);
  };
  const describe = place => {
    const one = view(), node = one.nodes[place], panel = byId("details");
    panel.replaceChildren();
    make("h3", node.l, panel);
    const list = make("dl", "", panel);
    const fact = (name, value) => { make("dt", name, list); return make("dd", value, list); };
    fact("kind", node.k);
    if (node.n.length) fact(node.n.length > 1 ? "layers, as they were fused" : "layer", node.n.join(" + "));
    let before = "";
    for (const [name, value] of node.f) {
      if (name === before) make("dd", value, list);
      else fact(name, value);
      before = name;
    }
    if (node.u !== undefined) {
      const link = make("a", `launch ${node.u} in the table`, fact("more", ""));
      link.href = `#launch-${node.u}`;
    }
    places(list, "reads from", state.view, one.makers[place]);
    places(list, "read by", state.view, one.readers[place]);
    data.views.forEach((other, number) => {
      if (number === state.view) return;
      const found = new Set(node.n.flatMap(name => entry(name).at[number]));
      places(list, `in “${other.title}”`, number, [...found]);
    });
    byId("said").textContent = `${node.l}, ${node.k}; read by ${one.readers[place].length} nodes`;
  };
  const pick = (place, moves) => {
    state.picked = place;
    if (place >= 0) {
      describe(place);
      if (moves) centre(view().nodes[place]);
    }
    redraw();
  };
  const show = number => {
    if (number === state.view) return;
    Object.assign(state, { view: number, picked: -1 });
    byId("view").value = number;
    legend();
    home(false);
  };
  const legend = () => {
    const counts = new Map();
    for (const node of view().nodes) counts.set(node.k, (counts.get(node.k) || 0) + 1);
    const list = byId("legend");
    list.replaceChildren();
    if (byId("colour").value === "time") {
      make("li", view().slowest ? `red: ${view().slowest.toPrecision(3)} ms, the slowest` : "this graph has no times", list);
      return;
    }
    for (const [kind, count] of [...counts].sort((a, b) => b[1] - a[1]).slice(0, 14)) {
      const item = make("li", "", list);
      make("i", "", item).style.background = fill({ k: kind, t: 0 });
      item.append(`${kind} ${count}`);
    }
  };

  // Finding.
  const find = text => {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return [];
    const found = [...layers.values()].filter(one => `${one.name} ${one.op}`.toLowerCase().includes(wanted));
    return found.sort((a, b) => (b.name.toLowerCase() === wanted) - (a.name.toLowerCase() === wanted) || a.name.length - b.name.length);
  };
  const go = one => {
    const number = one.at[state.view].length ? state.view : one.at.findIndex(places => places.length);
    if (number >= 0) {
      show(number);
      pick(one.at[number][0], true);
      return;
    }
    byId("details").replaceChildren();
    make("h3", one.name, byId("details"));
    make("p", `${one.op}: no op is left of this node. It was computed while the model was read, or nothing needs it.`, byId("details"));
    byId("said").textContent = `${one.name}: no op is left of this node`;
  };
  const results = () => {
    const found = find(byId("search").value), list = byId("results");
    list.replaceChildren();
    byId("count").textContent = byId("search").value.trim() ? `${found.length} found` : "";
    for (const one of found.slice(0, 50)) {
      const button = make("button", `${one.name} `, make("li", "", list));
      const where = one.at.flatMap((places, number) => (places.length ? [data.views[number].title.split(":")[0].toLowerCase()] : []));
      make("small", `${one.op} ${where.length ? where.join(", ") : "folded or removed"}`, button);
      button.addEventListener("click", () => go(one));
    }
  };

  // Events.
  const fingers = new Map();
  let moved = 0;
  const at = event => [event.offsetX, event.offsetY];
  const under = (x, y) => {
    const [px, py] = [(x - state.dx) / state.scale, (y - state.dy) / state.scale];
    return view().nodes.findIndex(node => Math.abs(node.x - px) <= W / 2 && py >= node.r * R && py <= node.r * R + H);
  };
  canvas.addEventListener("pointerdown", event => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, at(event));
    moved = 0;
  });
  canvas.addEventListener("pointermove", event => {
    const before = fingers.get(event.pointerId);
    if (!before) {
      canvas.style.cursor = under(...at(event)) < 0 ? "grab" : "pointer";
      return;
    }
    const now = at(event), others = [...fingers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    if (others.length) {
      const [other] = others, span = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);
      zoom(span(now, other) / Math.max(1, span(before, other)), other[0], other[1]);
    } else {
      state.dx += now[0] - before[0];
      state.dy += now[1] - before[1];
    }
    moved += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]);
    fingers.set(event.pointerId, now);
    redraw();
  });
  for (const kind of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(kind, event => {
      fingers.delete(event.pointerId);
      if (kind === "pointerup" && moved < 6) pick(under(...at(event)), false);
    });
  }
  canvas.addEventListener("wheel", event => {
    if (document.activeElement !== canvas && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * 0.0015), ...at(event));
  }, { passive: false });
  const beside = step => {
    const one = view(), rank = one.nodes[state.picked].r;
    const row = one.nodes.map((node, place) => [node, place]).filter(([node]) => node.r === rank).sort((a, b) => a[0].x - b[0].x);
    const next = row[row.findIndex(([, place]) => place === state.picked) + step];
    return next && next[1];
  };
  const keys = {
    ArrowDown: () => view().readers[state.picked][0],
    ArrowUp: () => view().makers[state.picked][0],
    ArrowLeft: () => beside(-1),
    ArrowRight: () => beside(1),
    Home: () => 0,
    End: () => view().nodes.length - 1,
  };
  canvas.addEventListener("keydown", event => {
    if (event.key === "+" || event.key === "=") zoom(1.25);
    else if (event.key === "-") zoom(0.8);
    else if (event.key === "0") home(true);
    else if (event.key === "Enter") byId("details").focus();
    else if (keys[event.key] && view().nodes.length) {
      const next = state.picked < 0 ? 0 : keys[event.key]();
      if (next !== undefined) pick(next, true);
    } else return;
    event.preventDefault();
  });
  byId("search").addEventListener("input", results);
  byId("search").addEventListener("keydown", event => {
    const [first] = find(byId("search").value);
    if (event.key === "Enter" && first) go(first);
  });
  byId("view").addEventListener("change", event => show(Number(event.target.value)));
  byId("colour").addEventListener("change", () => { legend(); redraw(); });
  byId("zoom-in").addEventListener("click", () => zoom(1.3));
  byId("zoom-out").addEventListener("click", () => zoom(1 / 1.3));
  byId("whole").addEventListener("click", () => home(true));
  dark.addEventListener("change", () => { legend(); redraw(); });
  new ResizeObserver(redraw).observe(canvas);
  const follow = () => {
    const wanted = new URLSearchParams(location.hash.slice(1)).get("layer");
    if (wanted !== null && layers.has(wanted)) go(layers.get(wanted));
  };
  window.addEventListener("hashchange", follow);

  legend();
  home(false);
  follow();
  draw();
  root.dataset.ready = String(data.views.reduce((sum, one) => sum + one.nodes.length, 0));
})();
