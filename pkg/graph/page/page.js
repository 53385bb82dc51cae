"use strict";
(() => {
  // ---- the graph, and what the user has chosen

  let graph = JSON.parse(document.getElementById("data").textContent);
  const byID = id => document.getElementById(id);
  const svg = byID("drawing"), view = byID("view"), details = byID("details");
  const chosen = { nodesBy: "kind", linksBy: "state", selected: null, current: null, zoom: 0, hover: null };
  let folded = new Set();

  const BOX_W = 132, BOX_H = 46, MARGIN = 44, FEW = 120, MANY = 16, SMALL_GROUP = 4;

  const isLive = () => Boolean(graph.state);
  const large = () => graph.nodes.length > FEW;

  const nodeTones = { ready: "good", degraded: "warn", terminating: "warn", failed: "bad", stopped: "off" };
  const linkTones = { up: "good", degraded: "warn", down: "bad" };
  const labTones = { ready: "good", degraded: "warn", failed: "bad", stopped: "off", deploying: "busy" };
  const severity = ["good", "none", "off", "busy", "warn", "bad"];
  const nodeTone = n => n.live ? nodeTones[n.live.state] || "busy" : "none";
  const linkTone = l => l.live ? linkTones[l.live.state] || "none" : "none";
  const worst = tones => tones.reduce((a, b) => severity.indexOf(b) > severity.indexOf(a) ? b : a, "good");
  const linkKey = l => `${graph.nodes[l.from].name}:${l.fromInterface} ${graph.nodes[l.to].name}:${l.toInterface || ""}`;

  // ---- words

  const count = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
  function bits(rate) {
    for (const unit of ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"]) {
      if (rate < 1000 || unit === "Gbit/s") return `${rate >= 10 || rate === 0 ? Math.round(rate) : rate.toFixed(1)} ${unit}`;
      rate /= 1000;
    }
  }
  const endName = (l, end) => {
    const n = graph.nodes[end ? l.to : l.from], i = end ? l.toInterface : l.fromInterface;
    return i ? `${n.name}:${i}` : n.name;
  };
  function impairments(l) {
    if (!l.live) return "";
    const [a, b] = l.live.impairment;
    if (a === b) return a;
    return [a && `from ${graph.nodes[l.from].name} ${a}`, b && `from ${graph.nodes[l.to].name} ${b}`].filter(Boolean).join("; ");
  }
  function middleText(l) {
    if (!l.live) return null;
    if (l.live.state === "down" || l.live.state === "degraded") return { text: l.live.state, cls: l.live.state === "down" ? "bad" : "warn" };
    const parts = [];
    const impaired = l.live.impairment[0] || l.live.impairment[1];
    if (impaired) parts.push(impaired);
    if (l.live.lossPercent >= 1) parts.push(`lost ${Math.round(l.live.lossPercent)}%`);
    const rate = l.live.rate ? Math.max(...l.live.rate) : 0;
    if (rate >= 10000) parts.push(bits(rate));
    return parts.length ? { text: parts.join(" · "), cls: impaired || l.live.lossPercent >= 1 ? "warn" : "" } : null;
  }
  function nodeLabel(n) {
    const parts = [n.name];
    if (n.outside) parts.push("outside the lab");
    if (n.kind) parts.push(`kind ${n.kind}`);
    if (n.live) parts.push(n.live.state);
    if (n.live && n.live.worker) parts.push(`on worker ${n.live.worker}`);
    return parts.join(", ");
  }
  function linkLabel(l) {
    const parts = [`Link ${endName(l, 0)} to ${endName(l, 1)}`];
    if (l.live) parts.push(l.live.state);
    return parts.join(", ");
  }
  function groupNote(g) {
    if (!isLive()) return count(g.nodes.length, "node");
    const ready = g.nodes.filter(i => nodeTone(graph.nodes[i]) === "good").length;
    return `${ready}/${g.nodes.length} ready`;
  }

  // ---- elements

  function make(name, attributes = {}, ...children) {
    const e = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    e.append(...children);
    return e;
  }
  function html(name, properties = {}, ...children) {
    const e = document.createElement(name);
    for (const [k, v] of Object.entries(properties)) k.includes("-") ? e.setAttribute(k, v) : e[k] = v;
    e.append(...children);
    return e;
  }
  const canvas = document.createElement("canvas").getContext("2d");
  const widths = new Map();
  function width(text, font) {
    const key = font + text;
    let w = widths.get(key);
    if (w === undefined) {
      canvas.font = font;
      w = canvas.measureText(text).width;
      widths.set(key, w);
    }
    return w;
  }
  const NAME_FONT = "600 13px system-ui, sans-serif", NOTE_FONT = "10.5px system-ui, sans-serif", LABEL_FONT = "600 10.5px system-ui, sans-serif";
  function fit(text, font, most) {
    if (width(text, font) <= most) return text;
    let low = 0, high = text.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (width(text.slice(0, middle) + "…", font) <= most) low = middle; else high = middle - 1;
    }
    return text.slice(0, low) + "…";
  }

  // ---- folding

  const canFold = g => large() && g.nodes.length >= SMALL_GROUP;
  function foldToFit() {
    folded = new Set();
    let shown = graph.nodes.length;
    for (const g of graph.groups.filter(canFold).sort((a, b) => b.nodes.length - a.nodes.length)) {
      if (shown <= FEW && g.nodes.length <= MANY) break;
      folded.add(g.name);
      shown -= g.nodes.length - 1;
    }
  }
  const isFolded = g => canFold(g) && folded.has(g.name);

  // ---- where everything is

  let items = [], rows = [], itemOf = [], lines = [], size = [0, 0];

  function layout() {
    const nodeItem = i => ({ id: `n${i}`, type: "node", node: i });
    const groupOf = [];
    graph.groups.forEach((g, at) => g.nodes.forEach(i => { groupOf[i] = at; }));
    rows = [];
    const gapX = large() ? 34 : 72, gapY = large() ? 92 : 128;
    if (!large()) {
      rows = graph.levels.map(row => row.map(nodeItem));
    } else {
      const columns = Math.max(4, Math.min(16, Math.floor((view.clientWidth - 2 * MARGIN) / (BOX_W + gapX))));
      const cut = list => { for (let i = 0; i < list.length; i += columns) rows.push(list.slice(i, i + columns)); };
      for (let at = 0; at < graph.groups.length;) {
        const band = graph.groups[at].band, row = [], blocks = [];
        for (; at < graph.groups.length && graph.groups[at].band === band; at++) {
          const g = graph.groups[at];
          if (isFolded(g)) row.push({ id: `g${at}`, type: "group", group: at });
          else if (canFold(g)) blocks.push([{ id: `f${at}`, type: "fold", group: at }, ...g.nodes.map(nodeItem)]);
          else row.push(...g.nodes.map(nodeItem));
        }
        cut(row);
        for (const block of blocks) { // its rows are close to each other
          const first = rows.length;
          cut(block);
          rows.slice(first + 1).forEach(row => { row.close = true; });
        }
      }
    }
    const widest = Math.max(1, ...rows.map(r => r.length));
    const total = widest * (BOX_W + gapX) - gapX + 2 * MARGIN;
    items = []; itemOf = [];
    let top = MARGIN;
    rows.forEach((row, y) => {
      if (y > 0) top += BOX_H + (row.close ? 30 : gapY);
      const rowWidth = row.length * (BOX_W + gapX) - gapX;
      row.forEach((item, x) => {
        item.row = y; item.column = x;
        item.x = (total - rowWidth) / 2 + x * (BOX_W + gapX);
        item.y = top;
        item.cx = item.x + BOX_W / 2; item.cy = item.y + BOX_H / 2;
        items.push(item);
        if (item.type === "node") itemOf[item.node] = item;
        if (item.type === "group") graph.groups[item.group].nodes.forEach(i => { itemOf[i] = item; });
      });
    });
    size = [total, top + BOX_H + MARGIN];
    joinLines(gapX);
  }

  // joinLines makes a line of each link, and one of all links between two boxes of which one is
  // a folded group.
  function joinLines(gapX) {
    lines = [];
    const many = new Map(), pairs = new Map();
    const order = new Map(items.map((item, i) => [item, i]));
    graph.links.forEach((l, i) => {
      const a = itemOf[l.from], b = itemOf[l.to];
      if (!a || !b) return;
      if (a.type === "node" && b.type === "node") {
        const key = order.get(a) < order.get(b) ? a.id + b.id : b.id + a.id;
        const line = { id: `l${i}`, a, b, links: [i] };
        if (!pairs.has(key)) pairs.set(key, []);
        pairs.get(key).push(line);
        lines.push(line);
      } else if (a !== b) {
        const [x, y] = order.get(a) < order.get(b) ? [a, b] : [b, a];
        const key = `${x.id}-${y.id}`;
        let line = many.get(key);
        if (!line) {
          line = { id: `m${key}`, a: x, b: y, links: [], many: true };
          many.set(key, line);
          lines.push(line);
        }
        line.links.push(i);
      }
    });
    for (const list of pairs.values()) list.forEach((line, n) => bend(line, n - (list.length - 1) / 2, gapX));
    for (const line of many.values()) bend(line, 0, gapX);
  }

  function bend(line, offset, gapX) {
    const { a, b } = line;
    if (a === b) {
      const x = a.cx + offset * 20, y = a.y;
      line.d = `M${x - 18} ${y}C${x - 40} ${y - 56} ${x + 40} ${y - 56} ${x + 18} ${y}`;
      line.points = [[x - 18, y], [x, y - 70], [x + 18, y]];
      return;
    }
    const dx = b.cx - a.cx, dy = b.cy - a.cy, length = Math.hypot(dx, dy);
    let by = offset * 46;
    if (Math.abs(dy) < 1 && Math.abs(dx) > BOX_W + gapX + 1) by += 70; // over the boxes between
    if (a.row > b.row || a.row === b.row && a.column > b.column) by = -by; // the same way whatever the direction
    const mx = (a.cx + b.cx) / 2 - dy / length * by, my = (a.cy + b.cy) / 2 + dx / length * by;
    const from = border(a, mx, my), to = border(b, mx, my);
    line.points = [from, [mx, my], to];
    line.d = `M${from.map(round)}Q${round(mx)} ${round(my)} ${to.map(round)}`;
  }
  const round = v => Math.round(v * 10) / 10;

  // border is where the line from a box's middle to a point leaves the box.
  function border(item, x, y) {
    const dx = x - item.cx, dy = y - item.cy;
    if (!dx && !dy) return [item.cx, item.cy];
    const t = Math.min(BOX_W / 2 / Math.max(Math.abs(dx), 1e-9), BOX_H / 2 / Math.max(Math.abs(dy), 1e-9));
    return [item.cx + dx * t, item.cy + dy * t];
  }
  function along([p, c, q], t) {
    const u = 1 - t;
    return [u * u * p[0] + 2 * u * t * c[0] + t * t * q[0], u * u * p[1] + 2 * u * t * c[1] + t * t * q[1]];
  }
  const lengthOf = ([p, c, q]) => Math.hypot(c[0] - p[0], c[1] - p[1]) + Math.hypot(q[0] - c[0], q[1] - c[1]);

  // ---- drawing

  let labels, boxes = new Map(), paths = new Map();

  function draw() {
    layout();
    boxes = new Map(); paths = new Map();
    const linkLayer = make("g"), boxLayer = make("g");
    labels = make("g", { id: "labels", "aria-hidden": "true" });
    for (const line of lines) {
      const g = make("g", { "data-line": line.id }, make("title"), make("path", { class: "line", d: line.d }), make("path", { class: "hit", d: line.d }));
      g.addEventListener("click", () => selectLine(line));
      g.addEventListener("mouseenter", () => hover(line));
      g.addEventListener("mouseleave", () => hover(null));
      linkLayer.append(g);
      paths.set(line, g);
    }
    for (const item of items) {
      const g = make("g", { role: "button", tabindex: "-1", "data-item": item.id });
      g.append(make("title"));
      if (item.type === "group") g.append(make("rect", { class: "behind", x: item.x + 5, y: item.y + 5, width: BOX_W, height: BOX_H, rx: 7 }));
      g.append(make("rect", { class: "front", x: item.x, y: item.y, width: BOX_W, height: BOX_H, rx: 7 }),
        make("text", { class: "name", x: item.cx, y: item.cy - 3 }), make("text", { class: "note", x: item.cx, y: item.cy + 13 }));
      g.addEventListener("click", () => { chosen.current = item.id; activate(item); });
      g.addEventListener("focus", () => { chosen.current = item.id; roving(); hover(item); });
      g.addEventListener("blur", () => hover(null));
      g.addEventListener("mouseenter", () => hover(item));
      g.addEventListener("mouseleave", () => hover(null));
      boxLayer.append(g);
      boxes.set(item, g);
    }
    svg.replaceChildren(linkLayer, boxLayer, labels);
    svg.setAttribute("viewBox", `0 0 ${size[0]} ${size[1]}`);
    chosen.hover = null;
    zoom();
    roving();
    paint();
  }

  function zoom() {
    const least = Math.min(1, Math.max(.55, (view.clientWidth - 4) / size[0]));
    const by = chosen.zoom || least;
    svg.setAttribute("width", Math.floor(size[0] * by));
    svg.setAttribute("height", Math.floor(size[1] * by));
  }

  // roving keeps one box in the order of the Tab key.
  function roving() {
    if (!items.some(i => i.id === chosen.current)) chosen.current = items.length ? items[0].id : null;
    for (const [item, g] of boxes) g.setAttribute("tabindex", item.id === chosen.current ? "0" : "-1");
  }

  // paint writes everything that changes while the places stay.
  function paint() {
    const nodeClass = categories(graph.nodes.filter(n => !n.outside), chosen.nodesBy);
    const pathClass = categories(graph.links, "datapath");
    for (const [item, g] of boxes) paintBox(item, g, nodeClass);
    for (const [line, g] of paths) paintLine(line, g, pathClass);
    mark();
    legend(nodeClass, pathClass);
    heading();
  }

  const valueOf = {
    kind: n => n.kind || "", worker: n => n.live && n.live.worker || "no worker", datapath: l => l.live && l.live.datapath || "no datapath",
    state: n => n.live ? n.live.state : "",
  };
  function categories(list, by) {
    const counts = new Map();
    for (const x of list) counts.set(valueOf[by](x), (counts.get(valueOf[by](x)) || 0) + 1);
    return new Map([...counts].sort((a, b) => a[0] < b[0] ? -1 : 1).map(([value, n], i) => [value, { n, i }]));
  }
  function boxClass(n, classes) {
    if (n.outside) return "outside";
    return chosen.nodesBy === "state" ? nodeTone(n) : `c${classes.get(valueOf[chosen.nodesBy](n)).i % 12}`;
  }

  function paintBox(item, g, classes) {
    const [name, note] = g.querySelectorAll("text"), title = g.querySelector("title");
    const write = (text, small, label, cls) => {
      setText(name, fit(text, NAME_FONT, BOX_W - 14));
      setText(note, fit(small, NOTE_FONT, BOX_W - 14));
      setText(title, label);
      set(g, "aria-label", label.replaceAll("\n", ", "));
      set(g, "class", `box ${item.type} ${cls}${isSelected(item) ? " selected" : ""}`);
    };
    if (item.type === "node") {
      const n = graph.nodes[item.node];
      const small = n.live ? [n.live.state, n.live.worker].filter(Boolean).join(" · ") : n.kind || "";
      write(n.name, small, nodeLabel(n), boxClass(n, classes));
      set(g, "aria-pressed", String(isSelected(item)));
      return;
    }
    const group = graph.groups[item.group], open = item.type === "fold";
    const tone = isLive() ? worst(group.nodes.map(i => nodeTone(graph.nodes[i]))) : "none";
    write(`${open ? "▾" : "▸"} ${group.name}`, groupNote(group), `${group.name}, ${count(group.nodes.length, "node")}, ${groupNote(group)}, ${open ? "unfolded" : "folded"}`, open ? "" : tone);
    set(g, "aria-expanded", String(open));
  }

  function paintLine(line, g, classes) {
    const links = line.links.map(i => graph.links[i]);
    const tone = worst(links.map(linkTone));
    let cls = tone;
    if (chosen.linksBy === "datapath" && isLive() && !line.many) cls = `path${classes.get(valueOf.datapath(links[0])).i % 4}`;
    if (line.many) cls += " many";
    else if (links[0].type !== "veth" && links[0].type !== "veth-stitch") cls += " dashed";
    const rate = Math.max(0, ...links.map(l => l.live && l.live.rate ? Math.max(...l.live.rate) : 0));
    set(g, "class", `link ${cls}${isSelected(line) ? " selected" : ""}`);
    g.querySelector(".line").style.strokeWidth = rate > 0 && !isSelected(line) ? `${Math.min(6, 1.5 + Math.log10(1 + rate / 1e4) * .8).toFixed(2)}px` : "";
    setText(g.querySelector("title"), line.many ? `${count(links.length, "link")} between ${itemName(line.a)} and ${itemName(line.b)}` : linkLabel(links[0]));
  }
  const itemName = item => item.type === "node" ? graph.nodes[item.node].name : graph.groups[item.group].name;
  function setText(e, text) { if (e.textContent !== text) e.textContent = text; }
  function set(e, name, value) { if (e.getAttribute(name) !== value) e.setAttribute(name, value); }

  // mark brings out what the pointer or the keyboard is at, or what is selected, and puts the labels.
  function mark() {
    // A box that was folded or unfolded under the pointer is gone, and no event says so.
    if (!boxes.has(chosen.hover) && !paths.has(chosen.hover)) chosen.hover = null;
    const at = chosen.hover || [...boxes.keys(), ...paths.keys()].find(isSelected) || null;
    svg.classList.toggle("focus", Boolean(at));
    const lit = new Set(at ? [at] : []);
    for (const line of lines) {
      if (line === at) { lit.add(line.a); lit.add(line.b); }
      if (at && (line.a === at || line.b === at)) { lit.add(line); lit.add(line.a); lit.add(line.b); }
    }
    for (const [item, g] of boxes) g.classList.toggle("lit", lit.has(item));
    for (const [line, g] of paths) g.classList.toggle("lit", lit.has(line));
    putLabels(at ? lines.filter(l => lit.has(l)) : lines);
  }
  function hover(at) {
    if (at && at.type === "fold") at = null; // it has no links
    if (chosen.hover === at) return;
    chosen.hover = at;
    mark();
  }

  // putLabels puts labels where they cover neither a box nor each other. What has no room is
  // left out: it shows when fewer links are lit, and in the details.
  function putLabels(shown) {
    const taken = new Map(), CELL = 128;
    const cells = function* (r) {
      for (let x = Math.floor(r[0] / CELL); x <= Math.floor(r[2] / CELL); x++)
        for (let y = Math.floor(r[1] / CELL); y <= Math.floor(r[3] / CELL); y++) yield `${x},${y}`;
    };
    const add = r => { for (const c of cells(r)) taken.has(c) ? taken.get(c).push(r) : taken.set(c, [r]); };
    const free = r => {
      if (r[0] < 0 || r[1] < 0 || r[2] > size[0] || r[3] > size[1]) return false;
      for (const c of cells(r)) for (const o of taken.get(c) || []) if (r[0] < o[2] && o[0] < r[2] && r[1] < o[3] && o[1] < r[3]) return false;
      return true;
    };
    for (const i of items) add([i.x - 2, i.y - 2, i.x + BOX_W + (i.type === "group" ? 7 : 2), i.y + BOX_H + (i.type === "group" ? 7 : 2)]);
    const out = [];
    const put = (text, cls, [x, y]) => {
      const half = width(text, LABEL_FONT) / 2 + 3;
      const r = [x - half, y - 8, x + half, y + 8];
      if (!free(r)) return false;
      add(r);
      const e = make("text", { x: round(x), y: round(y) }, text);
      if (cls) e.setAttribute("class", cls);
      out.push(e);
      return true;
    };
    const places = (line, list, text, cls) => { for (const t of list) if (put(text, cls, along(line.points, t))) return; };
    const steps = (line, from, most, step) => {
      const length = Math.max(1, lengthOf(line.points)), list = [];
      for (let d = from; d <= length * most; d += step) list.push(d / length);
      return list;
    };
    for (const line of shown) {
      if (line.many) {
        places(line, [.5, .42, .58, .34, .66], count(line.links.length, "link"), "middle");
        continue;
      }
      const l = graph.links[line.links[0]], near = steps(line, 13, .45, 6);
      if (l.fromInterface) places(line, near, l.fromInterface, "end");
      if (l.toInterface) places(line, near.map(t => 1 - t), l.toInterface, "end");
    }
    for (const line of shown) {
      const middle = !line.many && middleText(graph.links[line.links[0]]);
      if (middle) places(line, [.5, .46, .54, .42, .58, .36, .64, .3, .7], middle.text, `middle ${middle.cls}`);
    }
    labels.replaceChildren(...out);
  }

  // ---- header

  function heading() {
    const state = byID("state");
    setText(state, graph.state || "");
    state.className = `pill ${labTones[graph.state] || "none"}`;
    const inside = graph.nodes.filter(n => !n.outside);
    let text = `${count(inside.length, "node")}, ${count(graph.links.length, "link")}`;
    if (isLive()) {
      const ready = inside.filter(n => nodeTone(n) === "good").length, up = graph.links.filter(l => linkTone(l) === "good").length;
      text = `${ready} of ${count(inside.length, "node")} ready, ${up} of ${count(graph.links.length, "link")} up`;
    }
    setText(byID("summary"), text);
    byID("folding").hidden = !graph.groups.some(canFold);
  }
  function legend(nodeClass, pathClass) {
    const list = [...nodeClass].map(([value, { n, i }]) => {
      const cls = chosen.nodesBy === "state" ? nodeTones[value] || "busy" : `c${i % 12}`;
      return html("li", {}, html("i", { className: cls }), `${value} (${n})`);
    });
    if (isLive() && chosen.linksBy === "datapath") {
      for (const [value, { n, i }] of pathClass) list.push(html("li", {}, html("i", { className: `edge path${i % 4}` }), `${value} (${count(n, "link")})`));
    } else if (isLive()) {
      for (const [value, { n }] of categories(graph.links, "state")) list.push(html("li", {}, html("i", { className: `edge ${linkTones[value] || "none"}` }), `${value} (${count(n, "link")})`));
    }
    byID("legend").replaceChildren(...list);
  }
  function choices() {
    const options = (id, list, value) => {
      byID(id).replaceChildren(...list.map(name => html("option", { value: name }, name)));
      byID(id).value = value;
    };
    const byNode = isLive() ? ["state", "worker", "kind"] : ["kind"];
    if (!byNode.includes(chosen.nodesBy)) chosen.nodesBy = byNode[0];
    options("nodes-by", byNode, chosen.nodesBy);
    options("links-by", ["state", "datapath"], chosen.linksBy);
    byID("links-by-label").hidden = !isLive();
    byID("names").replaceChildren(...graph.nodes.filter(n => !n.outside).map(n => html("option", { value: n.name })));
  }

  // ---- selection and details

  function isSelected(x) {
    const s = chosen.selected;
    if (!s) return false;
    if (x.type === "node") return s.type === "node" && s.name === graph.nodes[x.node].name;
    if (x.links) return s.type === (x.many ? "lines" : "link") && s.name === (x.many ? x.id : linkKey(graph.links[x.links[0]]));
    return false;
  }
  function select(selected) {
    chosen.selected = selected;
    paint();
    showDetails();
  }
  const selectNode = i => select({ type: "node", name: graph.nodes[i].name });
  const selectLink = i => select({ type: "link", name: linkKey(graph.links[i]) });
  function selectLine(line) { line.many ? select({ type: "lines", name: line.id }) : selectLink(line.links[0]); }

  function activate(item) {
    if (item.type === "node") {
      if (isSelected(item)) return select(null);
      return selectNode(item.node);
    }
    fold(item.group, item.type === "fold");
  }
  function fold(at, whether) {
    const g = graph.groups[at];
    whether ? folded.add(g.name) : folded.delete(g.name);
    const held = svg.contains(document.activeElement);
    chosen.current = whether ? `g${at}` : `f${at}`;
    draw();
    showDetails();
    if (held) focusCurrent();
  }
  function focusCurrent() {
    const item = items.find(i => i.id === chosen.current);
    if (!item) return;
    boxes.get(item).focus({ preventScroll: true });
    boxes.get(item).scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  // reveal unfolds the group of a node, and selects the node.
  function reveal(i) {
    const at = graph.groups.findIndex(g => g.nodes.includes(i));
    if (at >= 0 && isFolded(graph.groups[at])) { folded.delete(graph.groups[at].name); draw(); }
    chosen.current = `n${i}`;
    roving();
    selectNode(i);
    focusCurrent();
  }

  let detailsFor = "";
  function showDetails() {
    const s = chosen.selected;
    const parts = s && content(s);
    const wasHidden = details.hidden;
    details.hidden = !parts;
    if (wasHidden !== details.hidden && !large()) zoom();
    if (!parts) { detailsFor = ""; details.replaceChildren(); return; }
    const now = JSON.stringify(parts);
    if (now === detailsFor) return;
    detailsFor = now;
    const held = details.contains(document.activeElement), focused = held && document.activeElement.dataset.key;
    const close = html("button", { type: "button", "aria-label": "Close details" }, "×");
    close.dataset.key = "close";
    close.addEventListener("click", closeDetails);
    const body = [html("div", { className: "head" }, html("h2", {}, parts.title), close)];
    if (parts.state) body.push(html("span", { className: `pill ${parts.tone}` }, parts.state));
    const dl = html("dl");
    for (const [name, value] of parts.facts) if (value !== "" && value !== undefined) dl.append(html("dt", {}, name), html("dd", {}, value));
    body.push(dl);
    for (const c of parts.commands || []) {
      const copy = html("button", { type: "button", "aria-label": `Copy: ${c.label}` }, "Copy");
      copy.dataset.key = `copy ${c.label}`;
      copy.addEventListener("click", async () => {
        try { await navigator.clipboard.writeText(c.line); copy.textContent = "Copied"; } catch { copy.textContent = "Select it"; }
        setTimeout(() => { copy.textContent = "Copy"; }, 1500);
      });
      body.push(html("div", { className: "command" }, html("span", {}, c.label), html("code", {}, c.line), copy));
    }
    if (parts.links && parts.links.length) {
      const list = html("ul");
      for (const l of parts.links.slice(0, 200)) {
        const button = html("button", { type: "button", className: "item" }, html("i", { className: `dot ${l.tone}` }), l.text);
        button.dataset.key = `link ${l.index}`;
        button.addEventListener("click", () => selectLink(l.index));
        list.append(html("li", {}, button));
      }
      body.push(html("h3", {}, count(parts.links.length, "link")), list);
    }
    if (parts.ends) {
      const list = html("ul");
      for (const i of parts.ends) {
        const button = html("button", { type: "button", className: "item" }, html("i", { className: `dot ${nodeTone(graph.nodes[i])}` }), graph.nodes[i].name);
        button.dataset.key = `node ${i}`;
        button.addEventListener("click", () => reveal(i));
        list.append(html("li", {}, button));
      }
      body.push(html("h3", {}, "Ends"), list);
    }
    details.replaceChildren(...body);
    if (held) ([...details.querySelectorAll("[data-key]")].find(e => e.dataset.key === focused) || close).focus();
  }
  function content(s) {
    if (s.type === "node") {
      const i = graph.nodes.findIndex(n => n.name === s.name), n = graph.nodes[i];
      if (!n) return null;
      const live = n.live || {};
      return {
        title: n.name, state: live.state || "", tone: nodeTone(n),
        facts: [["reason", live.reason], ["kind", n.kind], ["type", n.type], ["group", n.group], ["image", n.image], ["management", n.management],
          ["worker", live.worker], ["Pod", live.pod], ["restarts", n.live ? String(live.restarts) : ""], ["", n.outside ? "outside the lab" : ""]].map(([k, v]) => [k, v || ""]),
        commands: live.commands, links: linksOf(graph.links.flatMap((l, at) => l.from === i || l.to === i ? [at] : [])),
      };
    }
    if (s.type === "link") {
      const l = graph.links.find(l => linkKey(l) === s.name);
      if (!l) return null;
      const live = l.live, names = [endName(l, 0), endName(l, 1)];
      return {
        title: `${names[0]} – ${names[1]}`, state: live ? live.state : "", tone: linkTone(l),
        facts: live ? [["reason", live.reason || ""], ["carrier", live.carrier[0] ? `${names[0]} ${live.carrier[0]}${live.carrier[1] ? `, ${names[1]} ${live.carrier[1]}` : ""}` : "unknown"],
          [`${names[0]} sends`, live.rate ? bits(live.rate[0]) : "not measured yet"], [`${names[1]} sends`, live.rate ? bits(live.rate[1]) : "not measured yet"],
          ["round trip", live.rttMs ? `${live.rttMs.toFixed(2)} ms` : ""], ["heartbeats lost", `${round(live.lossPercent || 0)} %`], ["drops", String(live.drops)],
          ["impairment", impairments(l) || "none"], ["datapath", live.datapath || ""], ["type", l.type]] : [["type", l.type]],
        commands: live && live.commands, ends: [...new Set([l.from, l.to])],
      };
    }
    const line = lines.find(l => l.id === s.name);
    if (!line) return null;
    return { title: `${itemName(line.a)} – ${itemName(line.b)}`, state: "", tone: "", facts: [], links: linksOf(line.links) };
  }
  function linksOf(list) {
    return list.map(index => {
      const l = graph.links[index], middle = middleText(l);
      return { index, tone: linkTone(l), text: `${endName(l, 0)} – ${endName(l, 1)}${middle ? ` (${middle.text})` : ""}` };
    });
  }
  function closeDetails() {
    const held = details.contains(document.activeElement);
    select(null);
    if (held) focusCurrent();
  }

  // ---- keyboard and controls

  function neighbour(from, key) {
    const row = rows[from.row];
    switch (key) {
      case "ArrowLeft": return row[from.column - 1];
      case "ArrowRight": return row[from.column + 1];
      case "Home": return items[0];
      case "End": return items[items.length - 1];
      default: {
        const next = rows[from.row + (key === "ArrowUp" ? -1 : 1)];
        return next && next.reduce((a, b) => Math.abs(b.cx - from.cx) < Math.abs(a.cx - from.cx) ? b : a);
      }
    }
  }
  svg.addEventListener("keydown", e => {
    const item = items.find(i => i.id === chosen.current);
    if (!item || e.ctrlKey || e.metaKey || e.altKey) return;
    if (["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"].includes(e.key)) {
      const next = neighbour(item, e.key);
      if (next) { chosen.current = next.id; roving(); focusCurrent(); }
    } else if (e.key === "Enter" || e.key === " ") activate(item);
    else return;
    e.preventDefault();
  });
  document.addEventListener("keydown", e => {
    if (e.key === "Escape" && chosen.selected && e.target.id !== "find") closeDetails();
  });
  view.addEventListener("click", e => { if (e.target === view || e.target === svg) select(null); });
  byID("nodes-by").addEventListener("change", e => { chosen.nodesBy = e.target.value; paint(); });
  byID("links-by").addEventListener("change", e => { chosen.linksBy = e.target.value; paint(); });
  const zoomBy = factor => () => { chosen.zoom = Math.min(3, Math.max(.2, (svg.getAttribute("width") / size[0]) * factor)); zoom(); };
  byID("zoom-in").addEventListener("click", zoomBy(1.25));
  byID("zoom-out").addEventListener("click", zoomBy(.8));
  byID("zoom-fit").addEventListener("click", () => { chosen.zoom = 0; draw(); });
  byID("fold-all").addEventListener("click", () => { folded = new Set(graph.groups.filter(canFold).map(g => g.name)); draw(); });
  byID("unfold-all").addEventListener("click", () => { folded = new Set(); draw(); });
  function find() {
    const text = byID("find").value.trim().toLowerCase();
    if (!text) return;
    const names = graph.nodes.map(n => n.name.toLowerCase());
    let i = names.indexOf(text);
    if (i < 0) i = names.findIndex(n => n.startsWith(text));
    if (i < 0) i = names.findIndex(n => n.includes(text));
    byID("find").setCustomValidity(i < 0 ? "no node has that name" : "");
    byID("find").reportValidity();
    if (i >= 0) reveal(i);
  }
  byID("find").addEventListener("keydown", e => { if (e.key === "Enter") find(); });
  byID("find").addEventListener("input", () => byID("find").setCustomValidity(""));
  let resizing = 0;
  addEventListener("resize", () => { cancelAnimationFrame(resizing); resizing = requestAnimationFrame(() => large() ? draw() : zoom()); });

  // ---- changes

  function begin(next) {
    graph = next;
    choices();
    const held = svg.contains(document.activeElement);
    draw();
    showDetails();
    if (held) focusCurrent();
  }
  function follow(url) {
    const connection = byID("connection"), source = new EventSource(url);
    const say = (text, lost) => { setText(connection, text); connection.classList.toggle("lost", lost); };
    source.addEventListener("open", () => say("live", false));
    source.addEventListener("graph", e => begin(JSON.parse(e.data)));
    source.addEventListener("update", e => {
      const u = JSON.parse(e.data);
      graph.state = u.state;
      for (const [i, live] of Object.entries(u.nodes || {})) graph.nodes[i].live = live;
      for (const [i, live] of Object.entries(u.links || {})) graph.links[i].live = live;
      paint();
      showDetails();
    });
    source.addEventListener("trouble", e => {
      const trouble = JSON.parse(e.data);
      say(trouble || "live", Boolean(trouble));
    });
    source.addEventListener("error", () => say("connection lost, retrying", true));
  }

  chosen.nodesBy = isLive() ? "state" : "kind";
  foldToFit();
  choices();
  draw();
  if (document.body.dataset.events) follow(document.body.dataset.events);
  else if (graph.time) setText(byID("connection"), `as of ${new Date(graph.time).toLocaleString()}`);
})();
