/* The visible part of the drawing: page = drawing * scale + shift, in pixels. */

const NEAREST = 80;

export class View {
  constructor() {
    this.width = 1;
    this.height = 1;
    this.fit();
  }

  /** Show the whole drawing. */
  fit() {
    this.scale = 1;
    this.x = 0;
    this.y = 0;
  }

  resize(width, height) {
    this.x *= width / this.width;
    this.y *= height / this.height;
    this.width = width;
    this.height = height;
    this.hold();
  }

  pan(right, down) {
    this.x += right;
    this.y += down;
    this.hold();
  }

  /** Zoom by a factor around a fixed point of the page. */
  zoom(factor, atX = this.width / 2, atY = this.height / 2) {
    const scale = Math.min(Math.max(this.scale * factor, 1), NEAREST);
    const grown = scale / this.scale;
    this.x = atX - (atX - this.x) * grown;
    this.y = atY - (atY - this.y) * grown;
    this.scale = scale;
    this.hold();
  }

  /** Move a point of the drawing to the middle, unless it is well visible. */
  show(x, y) {
    const [seenX, seenY] = this.seen(x, y);
    const edge = 0.08;
    if (
      seenX < this.width * edge || seenX > this.width * (1 - edge) ||
      seenY < this.height * edge || seenY > this.height * (1 - edge)
    ) {
      this.pan(this.width / 2 - seenX, this.height / 2 - seenY);
    }
  }

  seen(x, y) {
    return [x * this.scale + this.x, y * this.scale + this.y];
  }

  drawn(x, y) {
    return [(x - this.x) / this.scale, (y - this.y) / this.scale];
  }

  /** Keep the drawing within the page. */
  hold() {
    this.x = Math.min(0, Math.max(this.x, this.width * (1 - this.scale)));
    this.y = Math.min(0, Math.max(this.y, this.height * (1 - this.scale)));
  }
}
