/** The picture of the pipeline: what is read, how it becomes changes, and what is remembered. */

/** Sizes in pixels; a box is placed by its upper left corner. */
interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
  title: string;
  lines?: readonly string[];
  look: 'side' | 'step' | 'store';
}

const size = { width: 1090, height: 392 };

/** The colours, for a light and a dark screen. The picture brings its own ground. */
const style = `
  .ground { fill: #ffffff; stroke: #d0d7de }
  .own { fill: none; stroke: #59636e; stroke-dasharray: 5 5 }
  .side { fill: #f6f8fa; stroke: #8c959f }
  .step { fill: #ddf4ff; stroke: #0969da }
  .store { fill: #fff8c5; stroke: #9a6700 }
  .arrow { fill: none; stroke: #424a53; stroke-width: 1.6 }
  .head { fill: #424a53 }
  text { font: 12.5px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #424a53 }
  .title { font-size: 15px; font-weight: 600; fill: #1f2328 }
  .label { font-style: italic }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117; stroke: #3d444d }
    .own { stroke: #9198a1 }
    .side { fill: #151b23; stroke: #656c76 }
    .step { fill: #121d2f; stroke: #4493f8 }
    .store { fill: #272115; stroke: #d29922 }
    .arrow { stroke: #b7bdc8 }
    .head { fill: #b7bdc8 }
    text { fill: #b7bdc8 }
    .title { fill: #f0f6fc }
  }`;

const step = (x: number, title: string, ...lines: string[]): Box => {
  return { x, y: 116, width: 118, height: 88, title, lines, look: 'step' };
};
const side = (x: number, title: string, ...lines: string[]): Box => {
  return { x, y: 96, width: 165, height: 128, title, lines, look: 'side' };
};

const boxes: readonly Box[] = [
  side(24, 'CRM', 'CSV · NDJSON', 'HTTP API · SQL', 'HubSpot · Salesforce'),
  side(901, 'Email platform', 'contacts', 'subscriptions', 'templates'),
  step(282, 'read', 'both sides,', 'as a whole'),
  step(420, 'plan', 'by the rules', 'of consent'),
  step(558, 'guard', 'much at once', 'needs approval'),
  step(696, 'apply', 'journaled, within', 'the rate limit'),
  { x: 282, y: 288, width: 118, height: 56, title: 'write-back', look: 'step' },
  { x: 448, y: 280, width: 130, height: 72, title: 'snapshot', look: 'store' },
  { x: 634, y: 280, width: 180, height: 72, title: 'do-not-contact list', look: 'store' },
];

/** The way of each arrow; it ends in a head. */
const arrows: readonly string[] = [
  'M189 160 H280',
  'M400 160 H418',
  'M538 160 H556',
  'M676 160 H694',
  'M814 160 H899',
  'M983 96 V74 H341 V114',
  'M479 278 V206',
  'M736 204 V240 H546 V278',
  'M780 278 V206',
  'M448 316 H402',
  'M282 316 H106 V226',
];

const labels: readonly [x: number, y: number, anchor: 'start' | 'middle' | 'end', text: string][] =
  [
    [225, 150, 'middle', 'desired'],
    [867, 150, 'middle', 'changes'],
    [664, 65, 'middle', 'observed'],
    [470, 246, 'end', 'recorded'],
    [641, 232, 'middle', 'acknowledged'],
    [771, 264, 'end', 'opt-outs'],
    [186, 306, 'middle', 'opt-outs'],
  ];

/** Returns the picture as SVG. */
export function pipelinePicture(): string {
  const { width, height } = size;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img">`,
    '<title>crm-mirror reads the CRM and the platform, plans, guards and applies changes</title>',
    `<style>${style}\n</style>`,
    '<defs><marker id="head" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" ' +
      'markerHeight="7" orient="auto"><path class="head" d="M0 0 L8 4 L0 8 Z"/></marker></defs>',
    `<rect class="ground" x="1" y="1" width="${width - 2}" height="${height - 2}" rx="10"/>`,
    '<rect class="own" x="262" y="20" width="572" height="352" rx="10"/>',
    '<text class="title" x="280" y="48">crm-mirror</text>',
    ...boxes.map(drawn),
    ...arrows.map((way) => `<path class="arrow" d="${way}" marker-end="url(#head)"/>`),
    ...labels.map(([x, y, anchor, text]) => {
      return `<text class="label" x="${x}" y="${y}" text-anchor="${anchor}">${text}</text>`;
    }),
    '</svg>',
    '',
  ].join('\n');
}

function drawn(box: Box): string {
  const { x, y, width, height, title, lines = [], look } = box;
  const middle = x + width / 2;
  const first = y + height / 2 - (lines.length * 18) / 2 + (look === 'store' ? 12 : 5);
  const shape =
    look === 'store'
      ? cylinder(box)
      : `<rect class="${look}" x="${x}" y="${y}" width="${width}" height="${height}" rx="6"/>`;
  const text = [title, ...lines].map((line, index) => {
    const kind = index === 0 ? ' class="title"' : '';
    return `<text${kind} x="${middle}" y="${first + index * 18}" text-anchor="middle">${line}</text>`;
  });
  return [shape, ...text].join('\n');
}

function cylinder({ x, y, width, height }: Box): string {
  const round = `a${width / 2} 9 0 0 0`;
  const side = height - 18;
  return [
    `<path class="store" d="M${x} ${y + 9} v${side} ${round} ${width} 0 v${-side}"/>`,
    `<ellipse class="store" cx="${x + width / 2}" cy="${y + 9}" rx="${width / 2}" ry="9"/>`,
  ].join('\n');
}
