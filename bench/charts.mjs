// Charts as SVG: panels side by side, both axes logarithmic, so that what grows with its work is a straight line and what does
// not grow is a level one. The colours follow the reader's light or dark mode.

const [WIDTH, HEIGHT] = [230, 170]; // of a panel's plot
const [LEFT, TOP, RIGHT, BOTTOM] = [58, 58, 14, 46]; // around it
const LEAST_DECADES = 1.2; // else noise would look like growth
const DASHES = ['', '6 3', '2 3', '9 3 2 3', '12 3'];

const STYLE = `
  svg { font: 12px system-ui, sans-serif; }
  .ground { fill: #ffffff; } text { fill: #1f2328; } .axis { stroke: #59636e; } .grid { stroke: #d1d9e0; }
  .s0 { color: #0969da; } .s1 { color: #bc4c00; } .s2 { color: #1a7f37; } .s3 { color: #8250df; } .s4 { color: #bf3989; }
  .line { fill: none; stroke: currentColor; stroke-width: 2; } .dot { fill: currentColor; }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117; } text { fill: #f0f6fc; } .axis { stroke: #9198a1; } .grid { stroke: #3d444d; }
    .s0 { color: #58a6ff; } .s1 { color: #ffa657; } .s2 { color: #3fb950; } .s3 { color: #d2a8ff; } .s4 { color: #ff9bce; }
  }`;

/** `{ title, label, panels: [{ label, series: [{ name, points: [[x, y], …] }] }] }`; `label` is that of the x axis. */
export function chart({ title, label, panels }) {
  const each = LEFT + WIDTH + RIGHT;
  const [width, height] = [each * panels.length, TOP + HEIGHT + BOTTOM];
  const names = [...new Set(panels.flatMap(({ series }) => series.map(({ name }) => name)))];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title><style>${STYLE}</style><rect class="ground" width="${width}" height="${height}"/>`,
    ...(names.length > 1 ? legend(names) : []),
    ...panels.map((panel, index) => drawn(panel, { label, names, x: each * index })),
    '</svg>\n',
  ].join('\n');
}

const legend = (names) => {
  let x = LEFT;
  return names.map((name, index) => {
    const from = x;
    x += 46 + name.length * 7;
    const line = `<path class="line" d="M${from} 14h24" stroke-dasharray="${DASHES[index]}"/>`;
    return `<g class="s${index}">${line}<text x="${from + 30}" y="18">${escaped(name)}</text></g>`;
  });
};

function drawn({ label: what, series }, { label, names, x }) {
  const points = series.flatMap((one) => one.points);
  const across = scale(
    points.map(([at]) => at),
    { from: 0, to: WIDTH, room: 0 },
  );
  const up = scale(
    points.map(([, value]) => value),
    { from: HEIGHT, to: 0, room: LEAST_DECADES },
  );
  const parts = [`<g transform="translate(${x + LEFT} ${TOP})"><text x="0" y="-14">${escaped(what)}</text>`];
  for (const tick of up.ticks) {
    parts.push(`<path class="grid" d="M0 ${up.at(tick)}h${WIDTH}"/>`);
    parts.push(`<text x="-6" y="${up.at(tick) + 4}" text-anchor="end">${short(tick)}</text>`);
  }
  for (const at of new Set(points.map(([value]) => value)))
    parts.push(`<text x="${across.at(at)}" y="${HEIGHT + 18}" text-anchor="middle">${short(at)}</text>`);
  parts.push(`<text x="${WIDTH / 2}" y="${HEIGHT + 36}" text-anchor="middle">${escaped(label)}</text>`);
  parts.push(`<path class="axis" fill="none" d="M0 0v${HEIGHT}h${WIDTH}"/>`);
  for (const { name, points: own } of series) {
    const number = names.indexOf(name);
    const places = own.map(([at, value]) => `${across.at(at)} ${up.at(value)}`);
    parts.push(
      `<g class="s${number}"><path class="line" d="M${places.join('L')}" stroke-dasharray="${DASHES[number]}"/>`,
    );
    parts.push(
      ...own.map(([at, value]) => `<circle class="dot" cx="${across.at(at)}" cy="${up.at(value)}" r="3"/>`),
      '</g>',
    );
  }
  return [...parts, '</g>'].join('\n');
}

/** A logarithmic axis: where a value lies, and which ones have a mark. It spans at least `room` decades. */
function scale(values, { from, to, room }) {
  let [low, high] = [Math.log10(Math.min(...values)), Math.log10(Math.max(...values))];
  const lacking = Math.max(0, room - (high - low)) / 2;
  [low, high] = [low - lacking, high + lacking];
  if (room > 0) [low, high] = [low - 0.08, high + 0.08]; // no point lies on the edge
  const at = (value) => Number((from + ((Math.log10(value) - low) / (high - low || 1)) * (to - from)).toFixed(1));
  const steps = high - low < 2.2 ? [1, 2, 5] : [1];
  const ticks = [];
  for (let decade = Math.floor(low); decade <= high; decade += 1)
    for (const step of steps) {
      const tick = step * 10 ** decade;
      if (Math.log10(tick) >= low && Math.log10(tick) <= high) ticks.push(tick);
    }
  return { at, ticks };
}

function short(value) {
  for (const [size, unit] of [
    [1e6, 'M'],
    [1e3, 'k'],
  ])
    if (value >= size) return `${Number((value / size).toPrecision(3))}${unit}`;
  return `${Number(value.toPrecision(3))}`;
}

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
