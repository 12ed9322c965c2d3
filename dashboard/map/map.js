/* A map of a fabric's links: pan, zoom, point, select; by mouse, touch or keyboard. */

import { readLook } from "./look.js";
import { Lines } from "./lines.js";
import { Matrix, backed } from "./matrix.js";
import { byHeat, cableText, readScene } from "./scene.js";
import { View } from "./view.js";

const STEP = 70; // pixels that an arrow key pans
const CLOSER = 1.35; // factor of a key or a turn of the wheel
const LEAST = 320; // height in pixels of a map that fills a low window
const SETTLES = 400; // milliseconds after which what is above the map may have moved it
const STILL = 4; // a pointer that moved less has clicked
const HINT = "Drag or arrows: move · + −: zoom · click or Enter: select · N: next busiest · Esc: clear · 0: all";

class FabricMap {
  constructor(parent) {
    this.root = element("div", "map");
    this.root.dataset.testid = "fabric-map";
    this.root.dataset.frames = "0";
    this.root.placeOf = (item) => this.placeOf(item);
    const head = this.root.appendChild(element("div", "head"));
    this.title = head.appendChild(element("div", "title"));
    const tools = head.appendChild(element("div", "tools"));
    this.button(tools, "−", "Zoom out", () => this.zoom(1 / CLOSER));
    this.button(tools, "+", "Zoom in", () => this.zoom(CLOSER));
    this.button(tools, "All", "Show all", () => this.fit());
    const frame = this.root.appendChild(element("div", "frame"));
    this.canvas = frame.appendChild(element("canvas", "canvas"));
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.tip = frame.appendChild(element("div", "tip"));
    this.announcement = this.root.appendChild(element("div", "announcement"));
    this.announcement.setAttribute("aria-live", "polite");
    this.legend = this.root.appendChild(element("div", "legend"));
    this.hint = this.root.appendChild(element("div", "hint"));
    this.hint.textContent = HINT;
    this.view = new View();
    this.hovered = null;
    this.picked = null;
    this.atHeat = -1;
    this.listen();
    parent.appendChild(this.root);
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(frame);
    this.refill = () => this.scene && this.fill();
    window.addEventListener("resize", this.refill);
    this.filling = setInterval(this.refill, SETTLES);
  }

  button(parent, text, label, act) {
    const made = parent.appendChild(element("button", "tool"));
    made.type = "button";
    made.textContent = text;
    made.title = label;
    made.setAttribute("aria-label", label);
    made.addEventListener("click", act);
  }

  close() {
    this.watch.disconnect();
    window.removeEventListener("resize", this.refill);
    clearInterval(this.filling);
    cancelAnimationFrame(this.asked);
    this.root.remove();
  }

  /** Show the data that the server sent, for the first time or again. */
  show(bytes, pick) {
    this.pick = pick;
    this.root.dataset.bytes = String(bytes.length);
    const scene = readScene(bytes);
    const news = !this.scene || scene.digest !== this.scene.digest;
    const moved = !this.scene || scene.drawing !== this.scene.drawing;
    if (news) {
      this.root.dataset.state = "drawing";
      this.scene = scene;
      this.form = scene.form === "matrix" ? new Matrix(scene) : new Lines(scene);
      this.heat = null;
      this.hover(null);
      if (moved) this.view.fit();
      this.title.textContent = scene.title;
      this.canvas.setAttribute("aria-label", `${scene.title}. ${HINT}`);
    }
    this.below = scene.below;
    this.fill();
    this.look = readLook(this.root, this.scene);
    this.showLegend();
    if (this.turn !== scene.turn || moved) this.showPicked(scene);
    this.turn = scene.turn;
    this.resize();
  }

  /** Give the map its height: that of the data, or what the window has room for. */
  fill() {
    const frame = this.canvas.parentElement;
    let { height } = this.scene;
    if (!height && this.root.isConnected) {
      const scrolled = document.querySelector("[data-testid='stMain']")?.scrollTop ?? 0;
      const around = this.root.offsetHeight - frame.offsetHeight;
      const top = this.root.getBoundingClientRect().top + scrolled;
      height = Math.max(LEAST, window.innerHeight - top - around - this.below);
    }
    const wanted = `${Math.round(height || LEAST)}px`;
    if (frame.style.height !== wanted) frame.style.height = wanted;
  }

  showPicked(scene) {
    this.picked = scene.picked;
    if (!this.picked || this.view.scale === 1) return;
    this.form.place(this.view.width, this.view.height);
    this.view.show(...this.form.middle(this.picked));
  }

  showLegend() {
    this.legend.replaceChildren();
    this.legend.appendChild(element("span", "what")).textContent = this.scene.legend;
    this.scene.classes.forEach((step, number) => {
      const entry = this.legend.appendChild(element("span", "entry"));
      const swatch = entry.appendChild(element("span", step.dashed ? "swatch dashed" : "swatch"));
      swatch.style[step.dashed ? "borderColor" : "backgroundColor"] = this.look.colours[number];
      entry.appendChild(element("span", "label")).textContent = step.label;
    });
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.canvas.parentElement;
    if (!width || !height || !this.scene) return;
    const ratio = window.devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    this.ratio = ratio;
    this.view.resize(width, height);
    this.form.place(width, height);
    this.ask();
  }

  /** Request a new frame. */
  ask() {
    if (this.asked) return;
    this.asked = requestAnimationFrame(() => {
      this.asked = 0;
      this.draw();
    });
  }

  draw() {
    const from = performance.now();
    const { form, look, view, scene } = this;
    const context = this.canvas.getContext("2d");
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.fillStyle = look.paper;
    context.fillRect(0, 0, view.width, view.height);
    form.draw(context, view, look, this.marks());
    if (scene.worst >= 0) this.nameWorst(context);
    this.root.dataset.frames = String(Number(this.root.dataset.frames) + 1);
    this.root.dataset.milliseconds = (performance.now() - from).toFixed(2);
    this.root.dataset.state = "drawn";
  }

  /** Return the position of an item on the page, for tests: {cable}, {vertex}, or the worst link. */
  placeOf(item = { cable: this.scene.worst }) {
    const [x, y] = this.view.seen(...this.form.middle(item));
    const { left, top } = this.canvas.getBoundingClientRect();
    return { x: left + x, y: top + y };
  }

  /** Return the outlined items and the width of their outlines. */
  marks() {
    const found = this.scene.worst < 0 ? [] : [[{ cable: this.scene.worst }, 1.5]];
    if (this.picked) found.push([this.picked, 3]);
    if (this.hovered) found.push([this.hovered, 1.5]);
    return found;
  }

  nameWorst(context) {
    const { form, look, view, scene } = this;
    const [x, y] = view.seen(...form.middle({ cable: scene.worst }));
    const leftwards = x > view.width - 110;
    context.font = `600 12px ${look.font}`;
    backed(context, scene.worst_text, x + (leftwards ? -12 : 12), Math.max(y - 9, 12),
      { ...look, ink: look.mark }, leftwards ? "right" : "left");
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.release(event));
    canvas.addEventListener("pointercancel", () => (this.pressed = null));
    canvas.addEventListener("pointerleave", () => this.hover(null));
    canvas.addEventListener("dblclick", (event) => this.zoom(2 * CLOSER, ...place(event)));
    canvas.addEventListener("wheel", (event) => this.turnWheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  press(event) {
    if (event.button !== 0) return;
    const [x, y] = place(event);
    this.pressed = { x, y, atX: x, atY: y, moved: false };
    this.canvas.setPointerCapture(event.pointerId);
  }

  move(event) {
    const [x, y] = place(event);
    const { pressed } = this;
    if (!pressed) {
      this.hover(this.form.hit(...this.view.drawn(x, y), this.view), [x, y]);
      return;
    }
    pressed.moved ||= Math.hypot(x - pressed.x, y - pressed.y) > STILL;
    if (!pressed.moved) return;
    this.hover(null);
    this.view.pan(x - pressed.atX, y - pressed.atY);
    [pressed.atX, pressed.atY] = [x, y];
    this.ask();
  }

  release(event) {
    const { pressed } = this;
    this.pressed = null;
    if (!pressed || pressed.moved) return;
    this.choose(this.form.hit(...this.view.drawn(...place(event)), this.view));
  }

  /** Zoom if the map has the focus or Ctrl is held; otherwise let the wheel scroll the page. */
  turnWheel(event) {
    if (!event.ctrlKey && this.root.getRootNode().activeElement !== this.canvas) return;
    event.preventDefault();
    this.zoom(event.deltaY < 0 ? CLOSER : 1 / CLOSER, ...place(event));
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const step = event.shiftKey ? 4 * STEP : STEP;
    const act = {
      ArrowLeft: () => this.pan(step, 0),
      ArrowRight: () => this.pan(-step, 0),
      ArrowUp: () => this.pan(0, step),
      ArrowDown: () => this.pan(0, -step),
      "+": () => this.zoom(CLOSER),
      "=": () => this.zoom(CLOSER),
      "-": () => this.zoom(1 / CLOSER),
      0: () => this.fit(),
      n: () => this.walk(1),
      p: () => this.walk(-1),
      Enter: () => this.choose(this.hovered ?? this.atMiddle()),
      Escape: () => this.choose(null),
    }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  atMiddle() {
    return this.form.hit(...this.view.drawn(this.view.width / 2, this.view.height / 2), this.view);
  }

  pan(right, down) {
    this.view.pan(right, down);
    this.ask();
  }

  zoom(factor, x, y) {
    this.view.zoom(factor, x, y);
    this.hover(null);
    this.ask();
  }

  fit() {
    this.view.fit();
    this.ask();
  }

  /** Go to the next busiest link, or back. */
  walk(step) {
    this.heat ??= byHeat(this.scene);
    this.atHeat = (this.atHeat + step + this.heat.length) % this.heat.length;
    const item = { cable: this.heat[this.atHeat] };
    const middle = this.form.middle(item);
    this.view.show(...middle);
    this.hover(item, this.view.seen(...middle));
  }

  hover(item, at) {
    if (!same(item, this.hovered)) this.ask();
    this.hovered = item;
    this.canvas.style.cursor = item ? "pointer" : "grab";
    this.tip.style.display = item ? "block" : "none";
    if (!item) return;
    const lines = item.cable === undefined ? [this.scene.names[item.vertex]] : cableText(this.scene, item.cable);
    this.tip.replaceChildren(...lines.map((line) => {
      const row = element("div", "line");
      row.textContent = line;
      return row;
    }));
    this.announcement.textContent = lines.join(", ");
    const { width, height } = this.view;
    this.tip.style.left = `${Math.max(4, Math.min(at[0] + 14, width - this.tip.offsetWidth - 6))}px`;
    const below = at[1] + 16 + this.tip.offsetHeight < height;
    this.tip.style.top = `${Math.max(2, below ? at[1] + 16 : at[1] - this.tip.offsetHeight - 10)}px`;
  }

  choose(item) {
    if (same(item, this.picked)) return;
    this.picked = item;
    this.ask();
    this.pick({ drawing: this.scene.drawing, cable: item?.cable ?? null, vertex: item?.vertex ?? null });
  }
}

function same(one, other) {
  return one?.cable === other?.cable && one?.vertex === other?.vertex;
}

function place(event) {
  return [event.offsetX, event.offsetY];
}

function element(tag, name) {
  const made = document.createElement(tag);
  made.className = name;
  return made;
}

const MAPS = new WeakMap();

/** Called by the page for the first drawing and for each later one. */
export default function drawFabricMap({ data, parentElement, setTriggerValue }) {
  let map = MAPS.get(parentElement);
  if (!map) {
    map = new FabricMap(parentElement);
    MAPS.set(parentElement, map);
  }
  map.show(data, (item) => setTriggerValue("picked", item));
  return () => {
    map.close();
    MAPS.delete(parentElement);
  };
}
