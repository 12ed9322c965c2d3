/* Devices at their positions, and one line for all cables between two of them. */

import { backed, shortened } from "./matrix.js";

const MARGIN = 26;
const WORDS = 118; // room for the names of levels
const HOST = 0;
const NEAR = 7; // pixels between the pointer and what it means
const MOST_NAMED = 40; // machines in sight; more are not named
const DASHES = [6, 4]; // of a cable that is gone
const GONE_WIDTH = 1.8;
const ASIDE = 5; // pixels beside the cables that are left between the same machines

export class Lines {
  constructor(scene) {
    this.scene = scene;
    this.recolour();
  }

  recolour() {
    const { cls } = this.scene;
    this.byClass = this.scene.classes.map(() => []);
    for (let cable = 0; cable < this.scene.count; cable += 1) this.byClass[cls[cable]].push(cable);
  }

  place(width, height) {
    const { x, y, levels } = this.scene;
    const left = levels.length ? WORDS : MARGIN;
    this.x = Float32Array.from(x, (value) => left + value * (width - left - MARGIN));
    this.y = Float32Array.from(y, (value) => height - MARGIN - value * (height - 2 * MARGIN));
    this.levelAt = levels.map((level) => height - MARGIN - level.y * (height - 2 * MARGIN));
  }

  hit(x, y, view) {
    const near = NEAR / view.scale;
    const vertex = this.vertexAt(x, y, near);
    if (vertex >= 0) return { vertex };
    const { a, b, count } = this.scene;
    let found = -1;
    let least = near * near;
    for (let cable = 0; cable < count; cable += 1) {
      const gap = distance(x, y, this.x[a[cable]], this.y[a[cable]], this.x[b[cable]], this.y[b[cable]]);
      if (gap <= least) {
        least = gap;
        found = cable;
      }
    }
    return found < 0 ? null : { cable: found };
  }

  vertexAt(x, y, near) {
    let found = -1;
    let least = near * near;
    for (let vertex = 0; vertex < this.x.length; vertex += 1) {
      const gap = (this.x[vertex] - x) ** 2 + (this.y[vertex] - y) ** 2;
      if (gap <= least) {
        least = gap;
        found = vertex;
      }
    }
    return found;
  }

  /** Return the position of an item in the drawing. */
  middle(item) {
    if (item.cable === undefined) return [this.x[item.vertex], this.y[item.vertex]];
    const [a, b] = [this.scene.a[item.cable], this.scene.b[item.cable]];
    return [(this.x[a] + this.x[b]) / 2, (this.y[a] + this.y[b]) / 2];
  }

  /** Draw a halo around a line, or around a device and its lines. */
  outline(context, view, look, item, width) {
    const { a, b, count } = this.scene;
    context.save();
    context.strokeStyle = look.mark;
    context.globalAlpha = 0.5;
    context.lineWidth = item.cable === undefined ? 1 + width : 4 + 3 * width;
    context.lineCap = "round";
    context.beginPath();
    if (item.cable !== undefined) this.trace(context, view, item.cable);
    else {
      for (let cable = 0; cable < count; cable += 1) {
        if (a[cable] === item.vertex || b[cable] === item.vertex) this.trace(context, view, cable);
      }
      const [x, y] = view.seen(this.x[item.vertex], this.y[item.vertex]);
      context.moveTo(x + 10, y);
      context.arc(x, y, 10, 0, 2 * Math.PI);
    }
    context.stroke();
    context.restore();
  }

  draw(context, view, look, marks) {
    for (const [item, width] of marks) this.outline(context, view, look, item, width);
    this.drawCables(context, view, look, false);
    this.drawCables(context, view, look, true);
    this.drawMachines(context, view, look);
    this.drawLevels(context, view, look);
  }

  /** Draw the present cables, or the removed ones: dashed, beside the remaining ones. */
  drawCables(context, view, look, dashed) {
    const last = Math.max(this.byClass.length - 1, 1);
    context.save();
    if (dashed) context.setLineDash(DASHES);
    this.byClass.forEach((cables, step) => {
      if (look.dashed[step] !== dashed) return;
      context.strokeStyle = look.colours[step];
      context.lineWidth = dashed ? GONE_WIDTH : 0.7 + (2.6 * step) / last;
      context.beginPath();
      for (const cable of cables) this.trace(context, view, cable, dashed ? ASIDE : 0);
      context.stroke();
    });
    context.restore();
  }

  /** Return the line of a cable, or a line some pixels beside it. */
  trace(context, view, cable, aside = 0) {
    const { a, b } = this.scene;
    const [fromX, fromY] = view.seen(this.x[a[cable]], this.y[a[cable]]);
    const [toX, toY] = view.seen(this.x[b[cable]], this.y[b[cable]]);
    const part = aside / Math.max(Math.hypot(toX - fromX, toY - fromY), 1);
    const [right, down] = [part * (toY - fromY), part * (fromX - toX)];
    context.moveTo(fromX + right, fromY + down);
    context.lineTo(toX + right, toY + down);
  }

  drawMachines(context, view, look) {
    const { kind, names } = this.scene;
    const radius = Math.min(2.1 * Math.sqrt(view.scale), 6);
    const seen = [];
    context.fillStyle = look.ink;
    for (let vertex = 0; vertex < this.x.length; vertex += 1) {
      const [x, y] = view.seen(this.x[vertex], this.y[vertex]);
      if (x < -9 || y < -9 || x > view.width + 9 || y > view.height + 9) continue;
      seen.push([vertex, x, y]);
      context.beginPath();
      if (kind[vertex] === HOST) context.arc(x, y, radius, 0, 2 * Math.PI);
      else context.rect(x - 1.6 * radius, y - 1.6 * radius, 3.2 * radius, 3.2 * radius);
      context.fill();
    }
    if (seen.length > MOST_NAMED) return;
    context.font = `11px ${look.font}`;
    const taken = [];
    for (const [vertex, x, y] of seen) {
      const name = shortened(names[vertex]);
      const width = context.measureText(name).width;
      const left = x + width > view.width - 12 ? x - 9 - width : x + 9;
      if (taken.some(([from, to, at]) => left < to && left + width > from && Math.abs(at - y) < 13)) continue;
      taken.push([left, left + width, y]);
      backed(context, name, left, y + 4, look, "left");
    }
  }

  drawLevels(context, view, look) {
    context.font = `600 12px ${look.font}`;
    this.scene.levels.forEach((level, number) => {
      const [, y] = view.seen(0, this.levelAt[number]);
      if (y > 0 && y < view.height) backed(context, level.text, 4, y + 4, look, "left");
    });
  }
}

/** Return the squared distance of a point from a line between two others. */
function distance(x, y, fromX, fromY, toX, toY) {
  const [along, down] = [toX - fromX, toY - fromY];
  const length = along * along + down * down;
  const part = length ? Math.min(1, Math.max(0, ((x - fromX) * along + (y - fromY) * down) / length)) : 0;
  return (fromX + part * along - x) ** 2 + (fromY + part * down - y) ** 2;
}
