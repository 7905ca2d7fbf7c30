import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createEmulator, type Emulator } from '../../../src/emulator/emulator.ts';
import { serve } from '../../../src/emulator/http-listener.ts';
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import { findProgram } from '../program.ts';
import { chromium } from 'playwright-core';
import { text } from 'node:stream/consumers';
import { stripVTControlCharacters } from 'node:util';
import { openSnapshot } from '../../../src/store/open-snapshot.ts';

// A small mirror on an emulator, for the pictures.

/** The command line, from the source. */
const program = fileURLToPath(new URL('../../../bin/crm-mirror.mjs', import.meta.url));

export interface PictureStage {
  /** The working directory; the configuration is where commands look for it. */
  folder: string;
  config: string;
  snapshot: string;
  url: string;
  emulator: Emulator;
  /** Writes the export of the CRM: rows of id, email, newsletter, product. */
  export(...rows: string[]): void;
  /** Calls the command line to its end, whatever its exit code. */
  call(...argv: string[]): Promise<void>;
  close(): Promise<void>;
}

/** Makes the folder and starts the platform, with these limits. */
async function openPictureStage(
  mirror: string,
  limits = ['contacts.enrol=30/60', '*=200/10'],
): Promise<PictureStage> {
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-pictures-'));
  const config = join(folder, 'config/mirror.yaml');
  const emulator = createEmulator({
    clock: { now: Date.now, monotonic: () => performance.now() },
    random: seeded(1),
    channels: [
      { id: 'ch_news', name: 'Newsletter' },
      { id: 'ch_product', name: 'Product updates' },
    ],
    limits,
  });
  const { url, close } = await serve(emulator, 0);
  const text = [
    `mirror: ${mirror}`,
    `snapshot: ../${mirror}.sqlite`,
    `platform: { url: "${url}", apiKey: "${emulator.apiKey}" }`,
    'contacts:',
    '  source: { type: csv, path: ../people.csv }',
    '  id: id',
    '  email: email',
    '  channels:',
    '    - { id: ch_news, name: Newsletter, subscription: newsletter }',
    '    - { id: ch_product, name: Product updates, subscription: product }',
  ];
  mkdirSync(join(folder, 'config'));
  writeFileSync(config, `${text.join('\n')}\n`);
  return {
    folder,
    config,
    snapshot: join(folder, `${mirror}.sqlite`),
    url,
    emulator,
    export(...rows) {
      const all = ['id,email,newsletter,product', ...rows];
      writeFileSync(join(folder, 'people.csv'), `${all.join('\n')}\n`);
    },
    async call(...argv) {
      await once(spawn(process.execPath, [program, ...argv], { cwd: folder }), 'exit');
    },
    async close() {
      await close();
      emulator.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Returns the path of a program. Throws one line that says what is missing. */
async function needed(...names: string[]): Promise<string> {
  const found = await findProgram(names);
  if (found === undefined) throw new Error(`the pictures need ${names.join(' or ')} on the path`);
  return found;
}

// Takes pictures of the pages that the console and the emulator serve, by a headless browser.

/** A page of the console, and how it is looked at. */
interface Look {
  /** The path below the mirror, and a link to follow there. */
  path: string;
  follow?: string;
  width?: number;
  height?: number;
  colorScheme?: 'light' | 'dark';
}

/**
 * Returns a function that takes a page of the console: runs of two months have ended, and in the
 * last export half of the people have unsubscribed, which awaits approval.
 */
export function takeConsole({ path, follow, ...options }: Look): (file: string) => Promise<void> {
  return async (file) => {
    const stage = await openPictureStage('acme', ['*=2000/10']);
    const running = spawn(
      process.execPath,
      [program, 'console', '-c', stage.config, '--port', '0'],
      { stdio: ['ignore', 'pipe', 'ignore'] },
    );
    const browser = await chromium.launch({
      executablePath: await needed('chromium', 'chromium-browser', 'google-chrome'),
      args: ['--no-sandbox', '--disable-dev-shm-usage'],
    });
    try {
      for (const rows of [rowsOf(0), rowsOf(2), rowsOf(people / 2)]) {
        stage.export(...rows);
        await stage.call('sync');
      }
      addHistory(stage.snapshot, people, Date.now());
      const [link] = await once(running.stdout.setEncoding('utf8'), 'data');
      const { width = 980, height = 760, colorScheme = 'light' } = options;
      const page = await browser.newPage({ viewport: { width, height }, colorScheme });
      await page.goto(String(link).trim());
      await page.goto(new URL(`/m/acme/${path}`, String(link)).href);
      if (follow !== undefined) await page.getByRole('link', { name: follow }).first().click();
      await page.waitForTimeout(500);
      await page.screenshot({ path: file });
    } finally {
      await browser.close();
      running.kill();
      await stage.close();
    }
  };
}

/** Takes the page on which the emulator describes the API. */
export async function takeEmulatorPage(file: string): Promise<void> {
  const stage = await openPictureStage('acme');
  try {
    await take(`${stage.url}/docs`, file, { width: 980, height: 752 });
  } finally {
    await stage.close();
  }
}

const people = 860;
const names = ['ann', 'ben', 'cara', 'dan', 'eve', 'finn', 'gina', 'hugo'];

/** Returns the rows of the people, of whom the first `left` have unsubscribed. */
function rowsOf(left: number): string[] {
  return Array.from({ length: people }, (_, at) => {
    const name = names[at] ?? `person${at + 1}`;
    const product = at % 9 < 5 ? 'yes' : '';
    return `${at + 1},${name}@example.com,${at < left ? 'no' : 'yes'},${product}`;
  });
}

async function take(
  url: string,
  file: string,
  { width, height }: { width: number; height: number },
): Promise<void> {
  const browser = await needed('chromium', 'chromium-browser', 'google-chrome');
  const profile = mkdtempSync(join(tmpdir(), 'crm-mirror-browser-'));
  // As root a browser does not start with its sandbox; what it shows here is our own.
  const safe = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'];
  const page = ['--hide-scrollbars', `--window-size=${width},${height}`, `--screenshot=${file}`];
  const options = ['--headless', ...safe, `--user-data-dir=${profile}`, ...page, url];
  try {
    const [code] = await once(spawn(browser, options, { stdio: 'ignore' }), 'exit');
    if (code !== 0) throw new Error(`${browser} could not take ${url}`);
  } finally {
    rmSync(profile, { recursive: true, force: true });
  }
}

// Records commands as a terminal shows them, and draws what it showed as SVG.

const columns = 100;
const letter = { width: 7.83, height: 18 };
const margin = { x: 18, top: 52, bottom: 14 };

/** Records a plan and a run, after both sides have changed. Returns the picture as SVG. */
export async function terminalPicture(): Promise<string> {
  const stage = await openPictureStage('acme');
  const { emulator, folder } = stage;
  try {
    for (const email of ['ben@example.com', 'cara@example.com', 'zoe@example.org'])
      emulator.seed.contact({ email, channels: { ch_news: 'opt_in' } });
    const [ann, ben] = ['1,ann@example.com,yes,yes', '2,ben@example.com,yes,no'];
    stage.export(ann, ben, '3,cara@example.com,yes,');
    await stage.call('sync');
    emulator.dashboard.leave('ben@example.com', 'ch_news');
    stage.export(ann, ben, '3,cara@example.com,no,', '4,eve@example.com,yes,yes');
    return drawn([
      '# Ben left the newsletter on the platform. In the CRM, Cara said no, and Eve is new.',
      '$ crm-mirror plan',
      ...(await shownBy('plan', folder)),
      '',
      '$ crm-mirror sync',
      ...(await shownBy('sync', folder)),
      '',
      '$ crm-mirror explain ben@example.com',
      ...answers(await shownBy('explain ben@example.com', folder)),
    ]);
  } finally {
    await stage.close();
  }
}

/** Returns the answers of an explanation, without the evidence below them. */
function answers(lines: readonly string[]): string[] {
  const evidence = lines.findIndex((line) => stripVTControlCharacters(line) === 'CRM');
  return [...lines.slice(0, evidence), '…'];
}

/** Returns what a terminal shows of a command; a progress line is overwritten in it. */
async function shownBy(command: string, folder: string): Promise<string[]> {
  const called = `stty cols ${columns}; '${process.execPath}' '${program}' ${command}`;
  const shell = spawn(await needed('script'), ['-qec', called, '/dev/null'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [written] = await Promise.all([text(shell.stdout), once(shell, 'exit')]);
  return written
    .trimEnd()
    .split(/\r*\n/)
    .map((line) => line.slice(line.lastIndexOf('\r') + 1).replace('\u001b[K', ''))
    .flatMap(wrapped);
}

/** Breaks a line that is longer than the terminal between words, so that it stays readable. */
function wrapped(line: string): string[] {
  if (stripVTControlCharacters(line).length <= columns) return [line];
  const at = line.lastIndexOf(' ', columns);
  return [line.slice(0, at), ...wrapped(`      ${line.slice(at + 1)}`)];
}

const style = `
  .ground { fill: #0d1117; stroke: #3d444d }
  .bar { fill: #1c2128 }
  text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
    fill: #c9d1d9; white-space: pre }
  .prompt { fill: #7ee787; font-weight: 600 }
  .quiet, .s2 { fill: #8b949e }
  .s1 { font-weight: 600 } .s31 { fill: #ff7b72 } .s32 { fill: #7ee787 }
  .s33 { fill: #d29922 } .s35 { fill: #d2a8ff }`;

/** Draws the lines in a window. */
function drawn(lines: readonly string[]): string {
  const width = Math.ceil(columns * letter.width + 2 * margin.x);
  const height = margin.top + lines.length * letter.height + margin.bottom - letter.height / 2;
  const bar = `M1 11 a10 10 0 0 1 10 -10 h${width - 22} a10 10 0 0 1 10 10 v19 h-${width - 2} z`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img">`,
    '<title>A terminal with a plan, a run and an explanation of crm-mirror</title>',
    `<style>${style}\n</style>`,
    `<rect class="ground" x="1" y="1" width="${width - 2}" height="${height - 2}" rx="10"/>`,
    `<path class="bar" d="${bar}"/>`,
    ...['#ff5f57', '#febc2e', '#28c840'].map(
      (fill, at) => `<circle cx="${20 + at * 18}" cy="16" r="5.5" fill="${fill}"/>`,
    ),
    `<text class="quiet" x="${width / 2}" y="20" text-anchor="middle">acme</text>`,
    ...lines.map((line, at) => drawnLine(line, margin.top + at * letter.height)),
    '</svg>',
    '',
  ].join('\n');
}

const kinds: Readonly<Record<string, string>> = {
  $: ' class="prompt"',
  '#': ' class="quiet"',
};

/** The length of a line is stated, so that any font keeps the columns. */
function drawnLine(line: string, y: number): string {
  if (line.trim() === '') return '';
  const kind = kinds[line.charAt(0)] ?? '';
  const length = (stripVTControlCharacters(line).length * letter.width).toFixed(1);
  const shown = line.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  const place = `x="${margin.x}" y="${y}" textLength="${length}"`;
  return `<text${kind} ${place} xml:space="preserve">${styledParts(shown)}</text>`;
}

/** Turns the colours of a terminal into parts with a class; 22 and 39 end a part. */
function styledParts(line: string): string {
  // A heading is bold, with a coloured mark in it.
  // oxlint-disable-next-line no-control-regex
  return line.replaceAll(/\u001b\[(\d+)m/g, (_, code: string) =>
    code === '22' || code === '39' ? '</tspan>' : `<tspan class="s${code}">`,
  );
}

// The picture of the pipeline: what is read, how it becomes changes, and what is remembered.

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
const svgStyle = `
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
    `<style>${svgStyle}\n</style>`,
    '<defs><marker id="head" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" ' +
      'markerHeight="7" orient="auto"><path class="head" d="M0 0 L8 4 L0 8 Z"/></marker></defs>',
    `<rect class="ground" x="1" y="1" width="${width - 2}" height="${height - 2}" rx="10"/>`,
    '<rect class="own" x="262" y="20" width="572" height="352" rx="10"/>',
    '<text class="title" x="280" y="48">crm-mirror</text>',
    ...boxes.map(drawnBox),
    ...arrows.map((way) => `<path class="arrow" d="${way}" marker-end="url(#head)"/>`),
    ...labels.map(([x, y, anchor, text]) => {
      return `<text class="label" x="${x}" y="${y}" text-anchor="${anchor}">${text}</text>`;
    }),
    '</svg>',
    '',
  ].join('\n');
}

function drawnBox(box: Box): string {
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

// The history of a sample mirror, for the pictures of the console: two months of nightly runs.

const dayMs = 86_400_000;
const days = 60;

/** Adds to the snapshot what so many runs would have left, up to `people` subscribed people. */
function addHistory(path: string, people: number, now: number): void {
  const random = seeded(7);
  const about = (least: number, most: number) => Math.round(least + random() * (most - least));
  const { figures, transaction, close } = openSnapshot(path);
  transaction(() => {
    for (let ago = days; ago >= 1; ago -= 1) {
      const at = now - ago * dayMs;
      const grown = 1 - (ago / days) * 0.12;
      figures.add({
        run: `sample-${ago}`,
        at,
        mode: 'full',
        ms: about(5200, 7400),
        requests: about(30, 70),
        refused: ago % 19 === 0 ? 1 : 0,
        used: about(55, 88) / 100,
        proofMs: about(5200, 7400),
        changed: about(2, ago % 7 < 2 ? 6 : 30),
        changes: [],
        people: {
          ch_news: Math.round(people * grown) - about(0, 3),
          ch_product: Math.round(people * 0.55 * grown) - about(0, 3),
        },
      });
      const day = new Date(at).toISOString().slice(0, 10);
      figures.addOptOuts({ day, origin: 'platform', n: about(0, 5) });
      figures.addOptOuts({ day, origin: 'stated', n: about(0, 3) });
      if (ago % 5 === 0) figures.addOptOuts({ day, origin: 'absence', n: about(1, 4) });
    }
  });
  close();
}
