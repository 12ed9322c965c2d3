/* Decodes the data from the server: a JSON header, then arrays. See picture.py for the format. */

const MAGIC = "FMAP";
const ARRAYS = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array };

/** Return the decoded picture: an object with the fields of the header and the arrays by name. */
export function readScene(bytes) {
  const own = bytes.slice(); // arrays must start at multiples of their size
  const magic = String.fromCharCode(...own.subarray(0, 4));
  if (magic !== MAGIC) throw new Error("invalid data: not a picture of a fabric");
  const length = new DataView(own.buffer).getUint32(4, true);
  const scene = JSON.parse(new TextDecoder().decode(own.subarray(8, 8 + length)));
  for (const [name, [kind, offset, count]] of Object.entries(scene.arrays)) {
    scene[name] = new ARRAYS[kind](own.buffer, offset, count);
  }
  scene.count = scene.a.length;
  return scene;
}

/** Return the cables by falling value; cables without a value last. */
export function byHeat(scene) {
  const order = Array.from({ length: scene.count }, (_, cable) => cable);
  const heat = order.map((cable) => {
    const value = hotter(scene, cable).value;
    return Number.isNaN(value) ? -Infinity : value;
  });
  return order.sort((one, other) => heat[other] - heat[one] || one - other);
}

/** Return the larger value of the two directions of a cable, and true if it is from a to b. */
export function hotter(scene, cable) {
  const there = scene.there[cable];
  const back = scene.back[cable];
  const forth = Number.isNaN(back) || there >= back;
  return { value: forth ? there : back, forth };
}

/** Return a value as text in the unit of the picture. */
export function valueText(scene, value) {
  if (Number.isNaN(value)) return "";
  const { size, name, sign } = scene.unit;
  const shown = Number((value / size).toPrecision(4)).toLocaleString("en", { maximumSignificantDigits: 4 });
  return `${sign && value > 0 ? "+" : ""}${shown} ${name}`;
}

/** Return lines of text about a cable; the first one names it. */
export function cableText(scene, cable) {
  const { value, forth } = hotter(scene, cable);
  const lines = [`${endText(scene, cable, forth)} → ${endText(scene, cable, !forth)}`];
  const step = scene.classes[scene.cls[cable]];
  if (scene.unit) {
    const other = forth ? scene.back[cable] : scene.there[cable];
    if (!Number.isNaN(value)) lines.push(`${valueText(scene, value)} this way`);
    if (!Number.isNaN(other)) lines.push(`${valueText(scene, other)} back`);
    if (Number.isNaN(value)) lines.push(step.text);
  } else {
    lines.push(step.text);
  }
  const cables = scene.cables ? scene.cables[cable] : 1;
  if (cables > 1) lines.push(`the busiest of ${cables} cables between them`);
  return lines;
}

function endText(scene, cable, first) {
  return scene.names[(first ? scene.a : scene.b)[cable]] + scene.ports[(first ? scene.ap : scene.bp)[cable]];
}
