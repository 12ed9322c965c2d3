/* What the server sent: a header of JSON, then arrays. See picture.py for the format. */

const MAGIC = "FMAP";
const ARRAYS = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array };

/** The picture in bytes, as an object with the header's fields and an array for each name. */
export function readScene(bytes) {
  const own = bytes.slice(); // arrays must start at multiples of their size
  const magic = String.fromCharCode(...own.subarray(0, 4));
  if (magic !== MAGIC) throw new Error("these bytes are no picture of a fabric");
  const length = new DataView(own.buffer).getUint32(4, true);
  const scene = JSON.parse(new TextDecoder().decode(own.subarray(8, 8 + length)));
  for (const [name, [kind, offset, count]] of Object.entries(scene.arrays)) {
    scene[name] = new ARRAYS[kind](own.buffer, offset, count);
  }
  scene.count = scene.a.length;
  return scene;
}

/** Cables from the hottest to the coldest; those without a value last. */
export function byHeat(scene) {
  const order = Array.from({ length: scene.count }, (_, cable) => cable);
  const heat = order.map((cable) => {
    const value = hotter(scene, cable).value;
    return Number.isNaN(value) ? -Infinity : value;
  });
  return order.sort((one, other) => heat[other] - heat[one] || one - other);
}

/** The direction of a cable with the larger value: its value, and whether it leads from a to b. */
export function hotter(scene, cable) {
  const there = scene.there[cable];
  const back = scene.back[cable];
  const forth = Number.isNaN(back) || there >= back;
  return { value: forth ? there : back, forth };
}

/** A value in the scene's unit. */
export function valueText(scene, value) {
  if (Number.isNaN(value)) return "";
  const { size, name, sign } = scene.unit;
  const shown = Number((value / size).toPrecision(4)).toLocaleString("en", { maximumSignificantDigits: 4 });
  return `${sign && value > 0 ? "+" : ""}${shown} ${name}`;
}

/** What is known of a cable, line by line; the first says which it is. */
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
  if (cables > 1) lines.push(`the hottest of ${cables} cables between the two`);
  return lines;
}

function endText(scene, cable, first) {
  const port = scene.ports[(first ? scene.ap : scene.bp)[cable]];
  const name = scene.names[(first ? scene.a : scene.b)[cable]];
  return port ? `${name} port ${port}` : name;
}
