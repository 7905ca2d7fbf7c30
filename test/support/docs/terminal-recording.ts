/** Records commands as a terminal shows them, and draws what it showed as SVG. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { stripVTControlCharacters } from 'node:util';
import { needed, openPictureStage, program } from './picture-stage.ts';

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
    ]);
  } finally {
    await stage.close();
  }
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
    '<title>A terminal with a plan and a run of crm-mirror</title>',
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
