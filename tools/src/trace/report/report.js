// Adds to a page that is complete without it: a timeline that zooms, a choice of syncs, search, sorting, light and dark.
// It writes text only as text, never as HTML: names come from whoever wrote the program.
"use strict";
(() => {
  const root = document.documentElement;
  const find = (id) => document.getElementById(id);
  const data = JSON.parse(find("data").textContent);
  root.classList.add("js");

  // Numbers as the tables have them.
  const duration = (ns) => {
    const size = Math.abs(ns);
    if (size < 1e3) return `${ns.toFixed(0)} ns`;
    if (size < 1e6) return `${(ns / 1e3).toFixed(2)} us`;
    if (size < 1e9) return `${(ns / 1e6).toFixed(2)} ms`;
    return `${(ns / 1e9).toFixed(3)} s`;
  };
  // A time with as many digits as `step` needs.
  const moment = (ns, step) => {
    const [unit, name] = ns < 1e3 ? [1, "ns"] : ns < 1e6 ? [1e3, "us"] : ns < 1e9 ? [1e6, "ms"] : [1e9, "s"];
    const digits = Math.min(9, Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9)));
    return ns === 0 ? "0" : `${(ns / unit).toFixed(digits)} ${name}`;
  };
  // A round number that is not less.
  const round = (rough) => {
    const power = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map((of) => of * power).find((of) => of >= rough * 0.99);
  };
  const percent = (share) => `${(100 * share).toFixed(1)} %`;

  // Arrays out of base64.
  const bytes = (text) => {
    const decoded = atob(text);
    const array = new Uint8Array(decoded.length);
    for (let i = 0; i < decoded.length; i++) array[i] = decoded.charCodeAt(i);
    return array;
  };
  const doubles = (text) => new Float64Array(bytes(text).buffer);
  const floats = (text) => new Float32Array(bytes(text).buffer);
  const integers = (text) => new Int32Array(bytes(text).buffer);
  const shorts = (text) => new Uint16Array(bytes(text).buffer);
  const UNKNOWN = 0xffff; // In place of a name or row.
  const BIN = 5; // The kind, then the shares of chunks, runtime, lost and idle.
  const [CHUNKS, RUNTIME, LOST, IDLE] = [1, 2, 3, 4];

  // ---- Light and dark. Whoever draws on a canvas asks to be told.
  const repaint = [];
  const isDark = () => {
    const chosen = root.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  const themeChanged = () => {
    find("theme").textContent = isDark() ? "Light colours" : "Dark colours"; // What it does, not what is.
    repaint.forEach((paint) => paint());
  };
  find("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    themeChanged();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", themeChanged);

  // ---- The timeline. Returns what shows a moment there: from, to, and if they are known the row and the chunk.
  const timeline = () => {
    const box = find("timeline-box");
    if (!box || data.rows.length === 0 || data.elapsed_ns <= 0) return null;
    const [LABELS, RIGHT, AXIS] = [96, 8, 24];
    const SHORTEST = 100; // ns in view, at least
    const rows = data.rows.length;
    const high = rows <= 2 ? 64 : rows <= 4 ? 48 : rows <= 8 ? 36 : rows <= 16 ? 26 : rows <= 40 ? 16 : rows <= 100 ? 10 : 6;
    const levels = data.levels.map((level) => ({ ...level, data: bytes(level.data) }));
    const names = data.chunk_names;
    const stretches = data.exact.map((each) => ({
      from: each.from_ns, to: each.to_ns, offsets: each.offsets,
      begin: Float64Array.from(integers(each.begin), (units) => each.from_ns + units * each.unit_ns), long: floats(each.long_ns), lost: floats(each.lost_ns),
      activity: bytes(each.activity), chunk: shorts(each.chunk), sender: shorts(each.sender),
      sentBefore: floats(each.sent_before_ns), sentFrom: shorts(each.sent_from),
    }));
    const stretchAt = (at) => stretches.find((each) => at >= each.from && at <= each.to);
    const path = { row: shorts(data.path.row), begin: doubles(data.path.begin_ns), long: floats(data.path.long_ns) };
    path.end = path.begin.map((begin, i) => begin + path.long[i]);
    let view = { from: 0, to: data.elapsed_ns };
    let cursor = null; // { row, at } that the readout tells of
    let chosen = UNKNOWN; // The chunk whose slices stand out.
    let asked = false;

    const canvas = document.createElement("canvas");
    canvas.id = "timeline-canvas";
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "application");
    canvas.setAttribute("aria-label", "Timeline of the workers. Keys: plus and minus zoom, left and right pan, 0 shows the "
      + "whole run, up and down choose a worker, n and p go from slice to slice. A table with the figures follows.");
    canvas.setAttribute("aria-describedby", "timeline-keys");
    box.append(canvas);
    const draw = canvas.getContext("2d");
    const height = rows * high + AXIS;
    canvas.style.height = `${height}px`;

    let colours = {};
    const readColours = () => {
      const probe = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      find("timeline-static").querySelector("svg").append(probe);
      const fill = (name) => { probe.setAttribute("class", name); return getComputedStyle(probe).fill; };
      colours = {
        activities: data.activities.map((activity) => (activity.state === "lost" ? fill("hatch-line") : fill(activity.class))),
        ground: fill("ground"), runtime: fill("runtime"), lost: fill("hatch-line"), lostGround: fill("hatch-ground"),
        ink: getComputedStyle(document.body).color, paper: getComputedStyle(document.body).backgroundColor,
        soft: getComputedStyle(find("timeline-keys")).color, accent: fill("heat"),
      };
      // Text is dark on light colours and light on dark ones.
      const light = (colour) => {
        const [red, green, blue] = (colour.match(/[\d.]+/g) || [0, 0, 0]).map(Number);
        return 0.299 * red + 0.587 * green + 0.114 * blue > 140;
      };
      colours.onActivities = colours.activities.map((colour) => (light(colour) ? "#10151a" : "#ffffff"));
      probe.remove();
      const tile = document.createElement("canvas");
      const scale = devicePixelRatio || 1;
      tile.width = tile.height = Math.round(6 * scale);
      const pen = tile.getContext("2d");
      pen.fillStyle = colours.lostGround;
      pen.fillRect(0, 0, tile.width, tile.height);
      pen.strokeStyle = colours.lost;
      pen.lineWidth = 1.8 * scale;
      for (const shift of [-1, 0, 1]) {
        pen.beginPath();
        pen.moveTo(shift * tile.width, tile.height);
        pen.lineTo((shift + 1) * tile.width, 0);
        pen.stroke();
      }
      colours.hatch = draw.createPattern(tile, "repeat");
      colours.hatch.setTransform(new DOMMatrix().scale(1 / scale));
    };

    const plot = () => Math.max(50, canvas.clientWidth - LABELS - RIGHT);
    const xOf = (ns) => LABELS + (ns - view.from) / (view.to - view.from) * plot();
    const timeOf = (x) => view.from + (x - LABELS) / plot() * (view.to - view.from);
    // The coarsest level whose bins are no wider than a pixel, or the finest.
    const level = () => {
      const pixel = (view.to - view.from) / plot();
      return levels.find((each) => each.bin_ns <= pixel) || levels[levels.length - 1];
    };
    // Slices begin in order: the first that ends after a moment.
    const firstSlice = (exact, row, at) => {
      let [low, end] = [exact.offsets[row], exact.offsets[row + 1]];
      while (low < end) {
        const middle = (low + end) >> 1;
        if (exact.begin[middle] + exact.long[middle] <= at) low = middle + 1; else end = middle;
      }
      return low;
    };
    const finest = levels[levels.length - 1];
    const showsSlices = () => level() === finest && finest.bin_ns > (view.to - view.from) / plot() / 2;

    const paintBins = (row, top, tall) => {
      const each = level();
      const first = Math.max(0, Math.floor(view.from / each.bin_ns));
      const last = Math.min(each.bins - 1, Math.floor(view.to / each.bin_ns));
      for (let bin = first; bin <= last; bin++) {
        const at = (row * each.bins + bin) * BIN;
        const [x, end] = [xOf(bin * each.bin_ns), xOf((bin + 1) * each.bin_ns)];
        const left = Math.max(LABELS, x);
        const wide = Math.min(LABELS + plot(), end + 0.4) - left;
        if (wide <= 0) continue;
        let below = top + tall;
        const part = (share, colour) => {
          if (share === 0) return;
          const size = share / 255 * tall;
          below -= size;
          draw.fillStyle = colour;
          draw.fillRect(left, below, wide, size);
        };
        part(each.data[at + CHUNKS], colours.activities[each.data[at]] || colours.ground);
        part(each.data[at + RUNTIME], colours.runtime);
        part(each.data[at + LOST], colours.hatch);
      }
    };
    const paintSlices = (exact, row, top, tall) => {
      const [from, to] = [Math.max(LABELS, xOf(exact.from)), Math.min(LABELS + plot(), xOf(exact.to))];
      if (to <= from) return;
      draw.fillStyle = colours.ground;
      draw.fillRect(from, top, to - from, tall);
      for (let i = firstSlice(exact, row, view.from); i < exact.offsets[row + 1] && exact.begin[i] < view.to; i++) {
        const [x, end] = [Math.max(from, xOf(exact.begin[i])), Math.min(to, xOf(exact.begin[i] + exact.long[i]))];
        if (end < x) continue;
        const lost = exact.long[i] > 0 ? exact.lost[i] / exact.long[i] * tall : 0;
        const wide = Math.max(0.5, end - x - (end - x > 4 ? 1 : 0));
        draw.globalAlpha = chosen === UNKNOWN || exact.chunk[i] === chosen ? 1 : 0.4;
        draw.fillStyle = colours.activities[exact.activity[i]];
        draw.fillRect(x, top + lost, wide, tall - lost);
        if (lost > 0) {
          draw.fillStyle = colours.hatch;
          draw.fillRect(x, top, wide, lost);
        }
        draw.globalAlpha = 1;
        if (wide > 46 && tall >= 16) label(exact, i, x, top + lost, wide, tall - lost);
      }
    };
    const label = (exact, i, x, top, wide, tall) => {
      if (tall < 13) return;
      const name = exact.chunk[i] === UNKNOWN ? data.activities[exact.activity[i]].name : names[exact.chunk[i]];
      const most = Math.floor((wide - 8) / 6.5);
      const text = name.length > most ? `${name.slice(0, Math.max(1, most - 1))}…` : name;
      draw.fillStyle = colours.onActivities[exact.activity[i]];
      draw.textAlign = "left";
      draw.fillText(text, x + 4, top + tall / 2 + 4);
    };
    const paintAxis = () => {
      const bottom = rows * high;
      const span = view.to - view.from;
      const rough = span / Math.max(2, plot() / 130);
      const step = round(rough);
      draw.fillStyle = colours.soft;
      draw.textAlign = "center";
      draw.fillRect(LABELS, bottom, plot(), 1);
      for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
        draw.fillRect(xOf(at), bottom, 1, 5);
        draw.fillText(moment(at, step), Math.min(Math.max(xOf(at), LABELS + 12), LABELS + plot() - 16), bottom + 18);
      }
    };
    const paintLines = () => {
      draw.fillStyle = colours.ink;
      draw.globalAlpha = 0.35;
      let last = -9;
      for (const at of data.sync_times_ns) {
        const x = Math.round(xOf(at));
        if (at < view.from || at > view.to || x - last < 8) continue; // Nearer lines hide what they cross.
        draw.fillRect(x, 0, 1, rows * high);
        last = x;
      }
      draw.globalAlpha = 1;
      draw.fillStyle = colours.accent;
      last = -99;
      for (const [at] of data.marks) {
        const x = xOf(at);
        if (at < view.from || at > view.to || x - last < 10) continue;
        last = x;
        draw.beginPath();
        draw.moveTo(x - 4, rows * high + 8);
        draw.lineTo(x + 4, rows * high + 8);
        draw.lineTo(x, rows * high + 1);
        draw.fill();
      }
    };
    const paintArrows = () => {
      if (!find("arrows") || !find("arrows").checked) return;
      draw.strokeStyle = draw.fillStyle = colours.ink;
      const inView = [];
      for (const exact of stretches) for (let row = 0; row < rows; row++) {
        for (let i = firstSlice(exact, row, view.from); i < exact.offsets[row + 1]; i++) {
          const sent = exact.begin[i] - exact.sentBefore[i];
          if (exact.begin[i] > view.to) break;
          if (sent >= 0 && sent <= view.to && exact.sentFrom[i] !== row) inView.push([sent, exact.sentFrom[i], exact.begin[i], row]);
        }
      }
      const ARROWS_IN_VIEW = 400; // More cannot be told apart.
      const every = Math.ceil(inView.length / ARROWS_IN_VIEW);
      draw.globalAlpha = inView.length > 80 ? 0.45 : 0.8;
      draw.lineWidth = 1;
      for (let i = 0; i < inView.length; i += every) {
        const [sent, from, handled, to] = inView[i];
        const [x0, y0] = [xOf(sent), from * high + (to < from ? 2 : high - 2)];
        const [x1, y1] = [xOf(handled), to * high + (to < from ? high - 2 : 2)];
        draw.beginPath();
        draw.moveTo(x0, y0);
        draw.lineTo(x1, y1);
        draw.stroke();
        const angle = Math.atan2(y1 - y0, x1 - x0);
        draw.beginPath();
        draw.moveTo(x1, y1);
        draw.lineTo(x1 - 6 * Math.cos(angle - 0.4), y1 - 6 * Math.sin(angle - 0.4));
        draw.lineTo(x1 - 6 * Math.cos(angle + 0.4), y1 - 6 * Math.sin(angle + 0.4));
        draw.fill();
      }
      draw.globalAlpha = 1;
    };
    // A line below what was on the path, and one from worker to worker.
    const paintPath = () => {
      if (!find("path-shown") || !find("path-shown").checked) return;
      draw.fillStyle = draw.strokeStyle = colours.ink;
      draw.lineWidth = 1;
      for (let i = 0; i < path.row.length; i++) {
        const row = path.row[i];
        const next = i + 1 < path.row.length ? path.row[i + 1] : UNKNOWN;
        const until = next === UNKNOWN ? path.end[i] : path.begin[i + 1];
        if (row === UNKNOWN || until < view.from || path.begin[i] > view.to) continue;
        const [x, end, bottom] = [xOf(path.begin[i]), xOf(path.end[i]), (row + 1) * high];
        draw.fillRect(x, bottom - 4, Math.max(0.7, end - x), 3);
        if (next === UNKNOWN || next === row) continue;
        draw.beginPath();
        draw.moveTo(end, bottom - 2.5);
        draw.lineTo(xOf(until), (next + 1) * high - 2.5);
        draw.stroke();
      }
    };
    const paint = () => {
      asked = false;
      const scale = devicePixelRatio || 1;
      const [wide, tall] = [Math.round(canvas.clientWidth * scale), Math.round(height * scale)];
      if (canvas.width !== wide || canvas.height !== tall) [canvas.width, canvas.height] = [wide, tall];
      draw.setTransform(scale, 0, 0, scale, 0, 0);
      draw.clearRect(0, 0, canvas.clientWidth, height);
      draw.font = "11.5px system-ui, sans-serif";
      const slices = showsSlices();
      for (let row = 0; row < rows; row++) {
        const [top, size] = [row * high + 1, high - 2];
        draw.fillStyle = colours.ground;
        draw.fillRect(LABELS, top, plot(), size);
        paintBins(row, top, size);
        if (slices) {
          draw.save();
          draw.beginPath();
          draw.rect(LABELS, top, plot(), size);
          draw.clip();
          for (const exact of stretches) paintSlices(exact, row, top, size);
          draw.restore();
        }
        if (high >= 10 || row % Math.ceil(12 / high) === 0) {
          draw.fillStyle = cursor && cursor.row === row ? colours.ink : colours.soft;
          draw.textAlign = "right";
          draw.fillText(data.rows[row].name, LABELS - 8, row * high + high / 2 + 4);
        }
      }
      paintLines();
      paintAxis();
      draw.save();
      draw.beginPath();
      draw.rect(LABELS, 0, plot(), rows * high);
      draw.clip();
      paintPath();
      paintArrows();
      if (cursor) {
        draw.strokeStyle = colours.ink;
        draw.lineWidth = 1.5;
        draw.strokeRect(LABELS + 0.5, cursor.row * high + 0.5, plot() - 1, high - 1);
        draw.fillStyle = colours.ink;
        draw.fillRect(xOf(cursor.at) - 0.75, cursor.row * high, 1.5, high);
      }
      draw.restore();
      const span = view.to - view.from;
      find("range").textContent = `${moment(view.from, span / 1000)} to ${moment(view.to, span / 1000)} (${duration(span)})`;
      find("range").dataset.from = view.from;
      find("range").dataset.to = view.to;
    };
    const ask = () => {
      if (asked) return;
      asked = true;
      requestAnimationFrame(paint);
    };
    const show = (from, to) => {
      const span = Math.min(Math.max(to - from, SHORTEST), data.elapsed_ns);
      const begin = Math.min(Math.max(from, 0), data.elapsed_ns - span);
      view = { from: begin, to: begin + span };
      ask();
    };
    const zoom = (factor, at = (view.from + view.to) / 2) => show(at - (at - view.from) * factor, at + (view.to - at) * factor);
    const pan = (part) => show(view.from + part * (view.to - view.from), view.to + part * (view.to - view.from));

    // Who sent what a slice handled.
    const sentBy = (exact, i) => {
      if (exact.sender[i] === UNKNOWN) return "";
      const when = exact.sentBefore[i];
      const where = when >= 0 ? ` on ${data.rows[exact.sentFrom[i]].name} ${duration(when)} before` : "";
      return `, sent by ${names[exact.sender[i]]}${where}`;
    };
    const slice = (exact, i) => {
      const chunk = exact.chunk[i] === UNKNOWN ? "" : ` of ${names[exact.chunk[i]]}`;
      const lost = exact.lost[i] > 0 ? `, ${duration(exact.lost[i])} of it lost` : "";
      return `${data.activities[exact.activity[i]].name}${chunk}, ${duration(exact.long[i])} from ${moment(exact.begin[i], 1)}${lost}`;
    };
    // What happened before slice i, and what ended it.
    const idle = (exact, row, i) => {
      const before = exact.offsets[row] === i ? exact.from : exact.begin[i - 1] + exact.long[i - 1];
      if (i === exact.offsets[row + 1]) return `idle, ${duration(exact.to - before)}`;
      return `idle, ${duration(exact.begin[i] - before)}, ended by ${slice(exact, i)}${sentBy(exact, i)}`;
    };
    const merged = (row, at) => {
      const each = level();
      const place = (row * each.bins + Math.min(each.bins - 1, Math.floor(at / each.bin_ns))) * BIN;
      const share = (which) => percent(each.data[place + which] / 255);
      const kind = data.activities[each.data[place]];
      return `${duration(each.bin_ns)} merged: in chunks ${share(CHUNKS)}`
        + (kind && kind.state === "chunks" ? ` (most of ${kind.name})` : "")
        + `, runtime ${share(RUNTIME)}, lost ${share(LOST)}, idle ${share(IDLE)}`;
    };
    const onPath = (row, at) => {
      for (let i = 0; i < path.row.length && path.begin[i] <= at; i++) if (path.row[i] === row && path.end[i] >= at) return true;
      return false;
    };
    const tell = (row, at) => {
      cursor = { row, at };
      ask();
      const exact = stretchAt(at);
      const i = exact ? firstSlice(exact, row, at) : 0;
      const what = !exact ? merged(row, at)
        : i < exact.offsets[row + 1] && exact.begin[i] <= at ? slice(exact, i) + sentBy(exact, i) : idle(exact, row, i);
      const mark = data.marks.find(([when]) => Math.abs(xOf(when) - xOf(at)) < 4);
      find("readout").textContent = `${data.rows[row].name} at ${moment(at, (view.to - view.from) / 1000)}: ${what}`
        + (onPath(row, at) ? "; on the critical path" : "") + (mark ? `; mark ${mark[1]}` : "");
    };
    // The next or previous slice of a row that was kept, or the next bin.
    const step = (forward) => {
      const { row, at } = cursor || { row: 0, at: view.from };
      const exact = stretchAt(at);
      let i = exact ? firstSlice(exact, row, at) + (forward ? 0 : -1) : 0;
      if (exact && forward && i < exact.offsets[row + 1] && exact.begin[i] <= at) i += 1;
      const there = exact && i >= exact.offsets[row] && i < exact.offsets[row + 1];
      const bin = level().bin_ns;
      const next = there ? exact.begin[i] + exact.long[i] / 2 : Math.min(Math.max(at + (forward ? bin : -bin), 0), data.elapsed_ns);
      if (next < view.from || next > view.to) show(next - (view.to - view.from) / 2, next + (view.to - view.from) / 2);
      tell(row, next);
    };
    // Shows a moment with what is around it: of a slice twice its length, of a point a part of the run.
    const go = (from, to, row = null, name = null) => {
      const around = Math.max((to - from) * 2, to > from ? 40 * SHORTEST : data.elapsed_ns / 50);
      const middle = (from + to) / 2;
      show(middle - around / 2, middle + around / 2);
      chosen = name === null || !names.includes(name) ? UNKNOWN : names.indexOf(name);
      tell(row === null ? (cursor ? cursor.row : 0) : row, middle);
      canvas.focus({ preventScroll: true });
      find("timeline").scrollIntoView({ block: "start" });
    };

    find("zoom-in").addEventListener("click", () => zoom(0.5));
    find("zoom-out").addEventListener("click", () => zoom(2));
    find("pan-left").addEventListener("click", () => pan(-0.4));
    find("pan-right").addEventListener("click", () => pan(0.4));
    find("zoom-reset").addEventListener("click", () => show(0, data.elapsed_ns));
    for (const id of ["arrows", "path-shown"]) if (find(id)) find(id).addEventListener("change", ask);
    const point = (event) => {
      const place = canvas.getBoundingClientRect();
      const [x, row] = [event.clientX - place.left, Math.floor((event.clientY - place.top) / high)];
      if (x >= LABELS && x <= LABELS + plot() && row >= 0 && row < rows) tell(row, timeOf(x));
    };
    canvas.addEventListener("wheel", (event) => {
      // A pinch comes as a wheel with the control key. Without it the wheel is the page's.
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const x = event.clientX - canvas.getBoundingClientRect().left;
      zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))), timeOf(Math.max(LABELS, x)));
      point(event);
    }, { passive: false });
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, from: view.from, to: view.to };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!drag) return point(event);
      const shift = (drag.x - event.clientX) / plot() * (drag.to - drag.from);
      show(drag.from + shift, drag.to + shift);
    });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { drag = null; });
    canvas.addEventListener("dblclick", (event) => zoom(0.25, timeOf(event.clientX - canvas.getBoundingClientRect().left)));
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const at = cursor && cursor.at >= view.from && cursor.at <= view.to ? cursor.at : (view.from + view.to) / 2;
      const choose = (by) => tell(Math.min(Math.max((cursor ? cursor.row : by > 0 ? -1 : 0) + by, 0), rows - 1), at);
      const keys = {
        "+": () => zoom(0.5, at), "=": () => zoom(0.5, at), "-": () => zoom(2, at), "0": () => show(0, data.elapsed_ns),
        Home: () => show(0, data.elapsed_ns), ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2),
        ArrowUp: () => choose(-1), ArrowDown: () => choose(1), n: () => step(true), p: () => step(false),
        Escape: () => { chosen = UNKNOWN; ask(); },
      };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
    repaint.push(() => { readColours(); ask(); });
    new ResizeObserver(ask).observe(canvas);
    readColours();
    paint();
    return go;
  };

  // ---- What happened somewhere in the run leads to the timeline.
  const lead = (go) => {
    const places = new Map([...document.querySelectorAll("#chunk-table tr[data-from]")].map((row) => [row.cells[0].textContent, row.dataset]));
    const leads = (cell, place, name) => {
      const button = document.createElement("button");
      button.type = "button";
      button.title = "Show in the timeline";
      button.append(...cell.childNodes);
      cell.append(button);
      button.addEventListener("click", () => go(Number(place.from), Number(place.to), place.row === undefined ? null : Number(place.row), name));
    };
    for (const table of document.querySelectorAll("table")) {
      const chunks = [...table.tHead.rows[0].cells].findIndex((head) => head.textContent === "chunk");
      for (const row of table.tBodies[0].rows) {
        const name = chunks < 0 ? null : row.cells[chunks].textContent;
        if (row.dataset.from !== undefined) leads(row.cells[0], row.dataset, name);
        else if (places.has(name)) leads(row.cells[chunks], places.get(name), name);
      }
    }
    for (const box of document.querySelectorAll(".over-time")) box.addEventListener("click", (event) => {
      const place = box.firstElementChild.getBoundingClientRect();
      const at = (event.clientX - place.left) / place.width * data.elapsed_ns;
      const chunk = event.target.closest("[data-chunk]");
      if (at >= 0 && at <= data.elapsed_ns) go(at, at, null, chunk && chunk.dataset.chunk);
    });
  };

  // ---- Bars of the ranks at another sync.
  const SVG = "http://www.w3.org/2000/svg";
  const rankBars = () => {
    const choice = find("sync-choice");
    const picture = find("rank-bars");
    if (!choice || !picture) return;
    const [PLOT, HEIGHT] = [1056, 150]; // As the page has them.
    const element = (name, attributes, text = "") => {
      const made = document.createElementNS(SVG, name);
      for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
      made.textContent = text;
      return made;
    };
    const paint = () => {
      const sync = data.syncs[choice.selectedIndex];
      const series = [["before", "measured before", sync.before_ns], ["predicted", "predicted", sync.predicted_ns],
        ["next", "measured next", sync.next_ns]];
      const ranks = Math.max(...series.map(([, , ns]) => ns.length));
      const most = Math.max(1, ...series.map(([, , ns]) => Math.max(0, ...ns))) * 1.1;
      const wide = PLOT / Math.max(1, ranks);
      const bar = Math.min(40, wide * 0.8 / 3);
      const shapes = element("svg", { viewBox: `0 0 ${PLOT} ${HEIGHT}`, preserveAspectRatio: "none", width: "100%", height: HEIGHT, overflow: "visible" });
      const words = [];
      const step = round(most / 5);
      for (let ns = 0; ns <= most; ns += step) {
        const y = HEIGHT * (1 - ns / most);
        shapes.append(element("path", { class: "grid", d: `M0 ${y}h${PLOT}` }));
        words.push(element("text", { class: "end", x: -8, y: y + 4 }, moment(ns, step)));
      }
      series.forEach(([name, words, list], number) => list.forEach((ns, rank) => {
        const tall = HEIGHT * ns / most;
        const x = wide * (rank + 0.5) + bar * (number - 1.5);
        const made = element("rect", { class: name, x, y: HEIGHT - tall, width: Math.max(0.5, bar - 0.5), height: tall });
        made.append(element("title", {}, `rank ${rank}, ${words}: ${duration(ns)}`));
        shapes.append(made);
      }));
      shapes.append(element("path", { class: "axis", d: `M0 ${HEIGHT}h${PLOT}` }));
      for (let rank = 0; rank < ranks; rank += Math.max(1, Math.ceil(ranks / 32))) {
        const x = `${100 * (rank + 0.5) / Math.max(1, ranks)}%`;
        words.push(element("text", { class: "middle", x, y: HEIGHT + 18 }, ranks <= 8 ? `rank ${rank}` : `${rank}`));
      }
      picture.replaceChildren(shapes, ...words);
      find("sync-shown").textContent = `decided at ${duration(sync.at_ns)}`;
    };
    choice.addEventListener("change", paint);
    paint();
  };

  // ---- Tables: sorted by any column, chunks searched.
  const sortable = (table) => {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const body = table.tBodies[0];
        const number = [...body.rows].some((row) => row.cells[column].dataset.v !== undefined);
        // Numbers begin with the largest, names with the first.
        const now = head.getAttribute("aria-sort");
        const ascending = now ? now === "descending" : !number;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        const value = (row) => {
          const cell = row.cells[column];
          if (!number) return cell.textContent;
          return cell.dataset.v ? Number(cell.dataset.v) : -Infinity;
        };
        const compare = number ? (a, b) => a - b || 0 : (a, b) => a.localeCompare(b, "en", { numeric: true });
        const sorted = [...body.rows].map((row) => [value(row), row])
          .sort(([a], [b]) => (a === b ? 0 : compare(a, b)) * (ascending ? 1 : -1));
        body.append(...sorted.map(([, row]) => row));
      });
    });
  };
  const search = () => {
    const input = find("chunk-search");
    if (!input) return;
    const rows = [...find("chunk-table").tBodies[0].rows];
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      let shown = 0;
      for (const row of rows) {
        row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
        shown += row.hidden ? 0 : 1;
      }
      find("chunk-count").textContent = `${shown} of ${rows.length}`;
    });
  };

  themeChanged();
  const go = timeline();
  if (go) lead(go);
  rankBars();
  document.querySelectorAll("table").forEach(sortable);
  search();
  // Rendered once the frame after this one begins.
  requestAnimationFrame(() => setTimeout(() => performance.mark("caribou-rendered"), 0));
})();
