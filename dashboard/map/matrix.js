/* Cables as cells of matrices: sections from top to bottom, panels of a section side by side. */

const TITLE = 22; // room above a panel, in pixels
const TILE_TITLE = 14;
const TILE_GAP = 8;
const NAMES = 150; // room for the names of rows
const NAMED = 10; // lowest row with room for a name
const LARGEST = 34; // side of a cell
const FINE = 4; // smaller cells are drawn as one picture
const TINY = 1.6; // smaller cells could fall between pixels

export class Matrix {
  constructor(scene) {
    this.scene = scene;
    this.panels = scene.panels.map((panel) => ({ ...panel, at: new Int32Array(panel.rows * panel.columns).fill(-1) }));
    this.panelOf = new Uint16Array(scene.count);
    this.panels.forEach((panel, number) => {
      for (let cable = panel.start; cable < panel.start + panel.count; cable += 1) {
        this.panelOf[cable] = number;
        panel.at[scene.row[cable] * panel.columns + scene.column[cable]] = cable;
      }
      panel.order = Array.from({ length: panel.count }, (_, k) => panel.start + k);
    });
    this.sections = [];
    for (const panel of this.panels) (this.sections[panel.section] ??= []).push(panel);
    this.sections = this.sections.filter(Boolean);
    this.recolour();
  }

  /** Update the drawing order after a change of the classes: the busiest cables are drawn last. */
  recolour() {
    const { cls } = this.scene;
    for (const panel of this.panels) {
      panel.order.sort((one, other) => cls[one] - cls[other] || one - other);
      panel.picture = null;
    }
  }

  place(width, height) {
    const weight = this.sections.map((panels) =>
      Math.sqrt(panels.reduce((sum, panel) => sum + panel.rows * panel.columns, 0)));
    const total = weight.reduce((sum, part) => sum + part, 0);
    let top = 0;
    this.sections.forEach((panels, number) => {
      const room = Math.max((height * weight[number]) / total, TITLE + 12);
      const used = panels.length === 1
        ? this.placeOne(panels[0], top, width, room)
        : this.placeTiles(panels, top, width, room);
      top += this.sections.length === 1 ? room : Math.min(room, used + 6);
    });
    if (top > height) this.squeeze(height / top);
  }

  squeeze(factor) {
    for (const panel of this.panels) {
      panel.y *= factor;
      panel.cellHeight *= factor;
    }
  }

  placeOne(panel, top, width, room) {
    panel.cellHeight = Math.min((room - TITLE - 2) / panel.rows, LARGEST);
    panel.margin = panel.names.length && panel.cellHeight >= NAMED ? NAMES : 4;
    panel.cellWidth = Math.min((width - panel.margin - 4) / panel.columns, LARGEST);
    panel.x = panel.margin;
    panel.y = top + TITLE;
    panel.tile = false;
    return TITLE + panel.rows * panel.cellHeight;
  }

  placeTiles(panels, top, width, room) {
    const head = panels[0].heading ? TITLE - 4 : 0;
    const rows = Math.max(...panels.map((panel) => panel.rows));
    const columns = Math.max(...panels.map((panel) => panel.columns));
    let best = { side: 0 };
    for (let across = 1; across <= panels.length; across += 1) {
      const down = Math.ceil(panels.length / across);
      const cellWidth = Math.min(((width - 4) / across - TILE_GAP) / columns, LARGEST);
      const cellHeight = Math.min(((room - head) / down - TILE_TITLE - 4) / rows, LARGEST);
      const side = Math.min(cellWidth, cellHeight);
      if (side > best.side) best = { side, across, cellWidth, cellHeight };
    }
    const wide = Math.min(best.cellWidth, 3 * best.cellHeight);
    const high = Math.min(best.cellHeight, 3 * best.cellWidth);
    panels.forEach((panel, number) => {
      panel.cellWidth = wide;
      panel.cellHeight = high;
      panel.x = 4 + (number % best.across) * (columns * wide + TILE_GAP);
      panel.y = top + head + TILE_TITLE + Math.floor(number / best.across) * (rows * high + TILE_TITLE + 4);
      panel.margin = 0;
      panel.tile = true;
    });
    return head + Math.ceil(panels.length / best.across) * (rows * high + TILE_TITLE + 4);
  }

  /** Return what is at a point of the drawing: a cable, or the device that names a row. */
  hit(x, y) {
    for (const panel of this.panels) {
      const column = Math.floor((x - panel.x) / panel.cellWidth);
      const row = Math.floor((y - panel.y) / panel.cellHeight);
      if (row < 0 || row >= panel.rows) continue;
      if (column < 0 && x > panel.x - panel.margin && panel.names.length) {
        const vertex = this.scene.names.indexOf(panel.names[row]);
        return vertex < 0 ? null : { vertex };
      }
      if (column < 0 || column >= panel.columns) continue;
      const cable = panel.at[row * panel.columns + column];
      return cable < 0 ? null : { cable };
    }
    return null;
  }

  /** Return left, top, width and height of a cable's cell in the drawing. */
  box(cable) {
    const panel = this.panels[this.panelOf[cable]];
    const { row, column } = this.scene;
    return [
      panel.x + column[cable] * panel.cellWidth,
      panel.y + row[cable] * panel.cellHeight,
      panel.cellWidth,
      panel.cellHeight,
    ];
  }

  /** Return the position of an item in the drawing: a cable's cell, or the first cell of a device. */
  middle(item) {
    const cable = item.cable ?? this.cablesOf(item.vertex)[0];
    if (cable === undefined) return [0, 0];
    const [x, y, width, height] = this.box(cable);
    return [x + width / 2, y + height / 2];
  }

  cablesOf(vertex) {
    const { a, b, count } = this.scene;
    const found = [];
    for (let cable = 0; cable < count; cable += 1) if (a[cable] === vertex || b[cable] === vertex) found.push(cable);
    return found;
  }

  /** Draw a frame around a cell, or each cell of a device; small cells get an enlarged frame. */
  outline(context, view, look, item, width) {
    const least = item.cable === undefined ? 3 : 11;
    for (const cable of item.cable === undefined ? this.cablesOf(item.vertex) : [item.cable]) {
      const [x, y, wide, high] = this.box(cable);
      const [left, top] = view.seen(x, y);
      const [w, h] = [Math.max(wide * view.scale, least), Math.max(high * view.scale, least)];
      const from = [left + (wide * view.scale - w) / 2, top + (high * view.scale - h) / 2];
      context.lineWidth = width + 3;
      context.strokeStyle = look.paper;
      if (item.cable !== undefined) context.strokeRect(...from, w, h);
      context.lineWidth = width;
      context.strokeStyle = look.mark;
      context.strokeRect(...from, w, h);
    }
  }

  draw(context, view, look, marks) {
    for (const panel of this.panels) {
      const [x, y] = view.seen(panel.x, panel.y);
      const width = panel.columns * panel.cellWidth * view.scale;
      const height = panel.rows * panel.cellHeight * view.scale;
      if (x > view.width || y > view.height || x + width < 0 || y + height < -2) continue;
      const cellWidth = panel.cellWidth * view.scale;
      const cellHeight = panel.cellHeight * view.scale;
      if (Math.min(cellWidth, cellHeight) < FINE) this.drawPicture(context, panel, look, x, y, width, height);
      else this.drawCells(context, panel, view, look, x, y, cellWidth, cellHeight);
      if (panel.block * cellWidth >= 10) this.drawBlocks(context, panel, look, x, y, cellWidth, height);
    }
    this.drawWords(context, view, look);
    for (const [item, width] of marks) this.outline(context, view, look, item, width);
  }

  drawPicture(context, panel, look, x, y, width, height) {
    if (!panel.picture || panel.look !== look.name) {
      panel.picture = this.paint(panel, look);
      panel.look = look.name;
    }
    context.imageSmoothingEnabled = false;
    context.drawImage(panel.picture, x, y, width, height);
    const cellWidth = width / panel.columns;
    const cellHeight = height / panel.rows;
    if (Math.min(cellWidth, cellHeight) >= TINY) return;
    const { cls, row, column, hot } = this.scene;
    const least = Math.max(2, Math.min(cellWidth, cellHeight));
    for (const cable of panel.order) {
      if (cls[cable] < hot && !look.dashed[cls[cable]]) continue;
      context.fillStyle = look.colours[cls[cable]];
      context.fillRect(x + column[cable] * cellWidth, y + row[cable] * cellHeight,
        Math.max(cellWidth, least), Math.max(cellHeight, least));
    }
  }

  paint(panel, look) {
    const canvas = document.createElement("canvas");
    canvas.width = panel.columns;
    canvas.height = panel.rows;
    const context = canvas.getContext("2d");
    const image = context.createImageData(panel.columns, panel.rows);
    const { cls, row, column } = this.scene;
    for (let cable = panel.start; cable < panel.start + panel.count; cable += 1) {
      const spot = 4 * (row[cable] * panel.columns + column[cable]);
      image.data.set(look.channels[cls[cable]], spot);
    }
    context.putImageData(image, 0, 0);
    return canvas;
  }

  drawCells(context, panel, view, look, x, y, cellWidth, cellHeight) {
    const { cls, row, column } = this.scene;
    const gap = Math.min(cellWidth, cellHeight) >= 6 ? 1 : 0.5;
    const [left, top] = [-x / cellWidth - 1, -y / cellHeight - 1];
    const [right, bottom] = [(view.width - x) / cellWidth, (view.height - y) / cellHeight];
    let last = -1;
    for (const cable of panel.order) {
      const [r, c] = [row[cable], column[cable]];
      if (c < left || c > right || r < top || r > bottom) continue;
      if (look.dashed[cls[cable]]) {
        drawHollow(context, look.colours[cls[cable]], x + c * cellWidth, y + r * cellHeight, cellWidth - gap, cellHeight - gap);
        continue;
      }
      if (cls[cable] !== last) {
        last = cls[cable];
        context.fillStyle = look.colours[last];
      }
      context.fillRect(x + c * cellWidth, y + r * cellHeight, cellWidth - gap, cellHeight - gap);
    }
  }

  drawBlocks(context, panel, look, x, y, cellWidth, height) {
    context.fillStyle = look.paper;
    for (let column = panel.block; column < panel.columns; column += panel.block) {
      context.fillRect(x + column * cellWidth - 1.5, y, 2.5, height);
    }
  }

  drawWords(context, view, look) {
    context.textBaseline = "alphabetic";
    for (const panel of this.panels) {
      const [x, y] = view.seen(panel.x - panel.margin + 4, panel.y);
      const width = panel.columns * panel.cellWidth * view.scale;
      const bottom = y + panel.rows * panel.cellHeight * view.scale;
      if (y > view.height + TITLE || bottom < 0 || x > view.width || x + width + panel.margin < 0) continue;
      this.drawNames(context, panel, view, look);
      if (panel.heading) {
        context.font = `600 12.5px ${look.font}`;
        backed(context, panel.heading, Math.max(x - 4, 4), Math.max(y - 7 - TILE_TITLE, 13), look, "left");
      }
      context.font = `${panel.tile ? "" : "600 "}${panel.tile ? 11 : 12.5}px ${look.font}`;
      if (panel.tile && context.measureText(panel.title).width > width) continue;
      const place = panel.tile ? [x - 4, y - 4] : [Math.max(x - 4, 4), Math.max(y - 7, 13)];
      backed(context, panel.title, ...place, look, "left");
    }
  }

  drawNames(context, panel, view, look) {
    const high = panel.cellHeight * view.scale;
    if (!panel.names.length || high < NAMED) return;
    const [x, top] = view.seen(panel.x, panel.y);
    context.font = `11px ${look.font}`;
    const first = Math.max(0, Math.floor(-top / high));
    const last = Math.min(panel.names.length, Math.ceil((view.height - top) / high));
    for (let row = first; row < last; row += 1) {
      const y = top + (row + 0.5) * high + 4;
      const name = shortened(panel.names[row]);
      if (x >= NAMES - 4) backed(context, name, x - 6, y, look, "right");
      else backed(context, name, 4, y, look, "left");
    }
  }
}

/** Draw the cell of a removed cable as a dashed border. */
function drawHollow(context, colour, x, y, width, height) {
  context.save();
  context.strokeStyle = colour;
  context.lineWidth = Math.min(1.6, width / 4);
  context.setLineDash([3, 2]);
  context.strokeRect(x + 1, y + 1, width - 2, height - 2);
  context.restore();
}

/** Draw text on the background colour of the page, so that it is readable on cells. */
export function backed(context, text, x, y, look, align) {
  context.textAlign = align;
  context.lineWidth = 4;
  context.lineJoin = "round";
  context.strokeStyle = look.paper;
  context.strokeText(text, x, y);
  context.fillStyle = look.ink;
  context.fillText(text, x, y);
}

export function shortened(name, most = 24) {
  return name.length <= most ? name : `${name.slice(0, 9)}…${name.slice(10 - most)}`;
}
