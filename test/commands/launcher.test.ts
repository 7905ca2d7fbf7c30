/** bin/crm-mirror.mjs as it is started: on this Node, and on one too old if there is any. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { calling } from '../support/commands/mirrored-contacts.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const launcher = join(root, 'bin/crm-mirror.mjs');
const oldNode = ['/usr/bin/node', '/usr/local/bin/node'].find(isOld);
const packaged = existsSync(join(root, `node_modules/node-${process.platform}-${process.arch}`));

/** Stands in for the command line: ends as its argument says, or when a signal comes. */
const standIn = `
export async function start() {
  const [how] = process.argv.slice(2);
  if (how === 'SIGTERM' || how === 'SIGINT') return process.kill(process.pid, how);
  if (how !== 'wait') return void (process.exitCode = Number(how));
  const ticking = setInterval(() => {}, 1000);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      console.log(signal);
      clearInterval(ticking);
      process.exitCode = { SIGINT: 130, SIGTERM: 143 }[signal] ?? 75;
    });
  }
  console.log(process.versions.node);
}
`;

let folder = '';

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'crm-mirror-launcher-'));
  for (const name of ['whole', 'bare']) {
    mkdirSync(join(folder, name, 'src'), { recursive: true });
    cpSync(join(root, 'bin'), join(folder, name, 'bin'), { recursive: true });
    writeFileSync(join(folder, name, 'package.json'), '{ "type": "module" }');
    writeFileSync(join(folder, name, 'src/cli.ts'), standIn);
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'whole/node_modules'));
});

afterAll(() => rmSync(folder, { recursive: true }));

const nodes = [
  { name: 'on this Node', node: process.execPath, skip: false },
  {
    name: oldNode ? 'on an old Node' : 'on an old Node (skipped: this machine has none)',
    node: oldNode ?? '',
    skip: !oldNode || !packaged,
  },
];

describe.each(nodes)('$name', ({ node, skip }) => {
  test.skipIf(skip)('runs the command line', async () => {
    const { code, out, err } = await launch(node, launcher, '--version');
    expect({ code, out, err }).toEqual({ code: 0, out: `${manifest.version}\n`, err: '' });
  });

  test.skipIf(skip)('names an unknown command and exits with 2', async () => {
    const { code, out, err } = await launch(node, launcher, 'nonsense');
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain("unknown command 'nonsense'");
  });

  test.skipIf(skip).each([0, 75])('passes exit code %i on', async (wanted) => {
    const { code } = await launch(node, join(folder, 'whole/bin/crm-mirror.mjs'), String(wanted));
    expect(code).toBe(wanted);
  });

  test.skipIf(skip).each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
    ['SIGHUP', 75],
  ] as const)('passes %s on, and prints the answer to it', async (signal, wanted) => {
    const { code, out } = await signalled(node, signal);
    expect(out.split('\n').slice(1)).toEqual([signal, '']);
    expect(code).toBe(wanted);
  });
});

describe('the example', () => {
  const call = async (argv: readonly string[], text: (shipped: string) => string) => {
    const place = mkdtempSync(join(folder, 'example-'));
    mkdirSync(join(place, 'config'));
    const shipped = readFileSync(join(root, 'config/mirror.yaml'), 'utf8');
    writeFileSync(join(place, 'config/mirror.yaml'), text(shipped));
    const before = process.cwd();
    process.chdir(place);
    onTestFinished(() => process.chdir(before));
    return calling(argv);
  };
  const found = 'there is no mirror.yaml here, and config/mirror.yaml is the example';
  const noKey = 'PLATFORM_API_KEY is not set';

  test.each(['sync', 'backfill', 'worker', 'pause', 'approve cafe'])(
    'is not used by `%s`, which changes something',
    async (line) => {
      const { code, err } = await call(line.split(' '), (shipped) => shipped);
      expect(code).toBe(2);
      expect(err).toContain(`crm-mirror: ${found} → write one with \`crm-mirror init FILE\``);
      expect(err).not.toContain(noKey);
    },
  );

  test('is used by `plan`, which says so', async () => {
    const { err } = await call(['plan'], (shipped) => shipped);
    expect(err).toContain(`configuration: ${found}`);
    expect(err).toContain(noKey);
  });

  test('is used by `sync` if it is named', async () => {
    const { err } = await call(['sync', '-c', 'config/mirror.yaml'], (shipped) => shipped);
    expect(err).toContain(noKey);
    expect(err).not.toContain('example');
  });

  test('is none any more once it is changed', async () => {
    const { err } = await call(['sync'], (shipped) => shipped.replace('10000', '20000'));
    expect(err).toContain(noKey);
    expect(err).not.toContain('example');
  });
});

test.skipIf(!oldNode || !packaged)('an old Node starts the packaged one', async () => {
  const { out } = await signalled(oldNode ?? '', 'SIGTERM');
  expect(Number(out.split('.')[0])).toBeGreaterThanOrEqual(24);
});

test.skipIf(!oldNode || !packaged).each([
  ['SIGTERM', 143],
  ['SIGINT', 130],
])('a kill by %s is reported as exit code %i', async (signal, wanted) => {
  const { code } = await launch(oldNode ?? '', join(folder, 'whole/bin/crm-mirror.mjs'), signal);
  expect(code).toBe(wanted);
});

test.skipIf(!oldNode)('an old Node without the packaged one says what is missing', async () => {
  const { code, out, err } = await launch(
    oldNode ?? '',
    join(folder, 'bare/bin/crm-mirror.mjs'),
    '--version',
  );
  expect({ code, out }).toEqual({ code: 1, out: '' });
  expect(err).toMatch(/^crm-mirror needs Node 22\.20 or newer, this is [\d.]+ → .+\n$/);
});

interface Ended {
  code: number | null;
  out: string;
  err: string;
}

function start(node: string, args: readonly string[]) {
  const child = spawn(node, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  const said = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said.out += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said.err += text));
  const ended = once(child, 'close').then(([code]): Ended => ({ code, ...said }));
  return { child, ended };
}

async function launch(node: string, ...args: readonly string[]): Promise<Ended> {
  return start(node, args).ended;
}

/** Starts the stand-in, waits until it has said which Node it runs on, and sends the signal. */
async function signalled(node: string, signal: NodeJS.Signals): Promise<Ended> {
  const { child, ended } = start(node, [join(folder, 'whole/bin/crm-mirror.mjs'), 'wait']);
  await Promise.race([once(child.stdout, 'data'), ended]);
  child.kill(signal);
  return ended;
}

function isOld(node: string): boolean {
  if (!existsSync(node)) return false;
  const version = execFileSync(node, ['--version'], { encoding: 'utf8' });
  return Number(/^v(\d+)/.exec(version)?.[1]) < 22;
}
