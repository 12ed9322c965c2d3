/* Colours of the page and of the classes of links, for light and dark themes. */

/** Return the current colours and font of the page. */
export function readLook(root, scene) {
  const style = getComputedStyle(root);
  const value = (name, otherwise) => style.getPropertyValue(name).trim() || otherwise;
  const paper = value("--st-background-color", "#ffffff");
  const dark = luminance(paper) < 0.4;
  const name = dark ? "dark" : "light";
  const colours = scene.classes.map((step) => step[name]);
  return {
    name,
    paper,
    ink: value("--st-text-color", dark ? "#fafafa" : "#31333f"),
    mark: scene.mark[name],
    font: value("--st-font", "sans-serif"),
    colours,
    channels: colours.map((colour) => [...channels(colour), 255]),
    dashed: scene.classes.map((step) => Boolean(step.dashed)),
  };
}

function channels(colour) {
  const hex = /^#([0-9a-f]{6})/i.exec(colour);
  if (hex) return [0, 2, 4].map((at) => parseInt(hex[1].slice(at, at + 2), 16));
  const numbers = /^rgba?\(([^)]*)\)/.exec(colour);
  return numbers ? numbers[1].split(/[ ,/]+/).slice(0, 3).map(Number) : [255, 255, 255];
}

function luminance(colour) {
  const [red, green, blue] = channels(colour);
  return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255;
}
