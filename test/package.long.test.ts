/** The package that `npm pack` makes: what is in it, and that it runs where npm installs it. */
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';

const root = join(import.meta.dirname, '..');
const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-package-'));
afterAll(() => rmSync(folder, { recursive: true }));
const clone = join(folder, 'clone');
const prefix = join(folder, 'prefix');
const minutes = 60_000;

/** Runs a program to its end, and returns what it prints. */
function ran(program: string, argv: readonly string[], cwd = folder): string {
  const run = spawnSync(program, argv, { cwd, env: process.env, maxBuffer: 64 * 1024 ** 2 });
  expect(`${String(run.stdout)}${String(run.stderr)}`.slice(run.status === 0 ? Infinity : 0)).toBe(
    '',
  );
  return String(run.stdout);
}

const made = z.object({
  filename: z.string(),
  size: z.number(),
  files: z.array(z.object({ path: z.string() })),
});
let packed: z.infer<typeof made>;

beforeAll(() => {
  // The build removes `dist` first, which other tests may read.
  for (const part of [
    'bin',
    'config',
    'docs',
    'src',
    'CHANGELOG.md',
    'LICENSE',
    'README.md',
    'SECURITY.md',
    'package.json',
    '.npmrc',
    'tsconfig.json',
    'tsconfig.build.json',
    'tsconfig.types.json',
  ])
    cpSync(join(root, part), join(clone, part), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(clone, 'node_modules'));
  const argv = ['pack', '--ignore-scripts=false', '--json', '--pack-destination', folder];
  const out = ran('npm', argv, clone);
  const [found] = z.array(made).parse(JSON.parse(out.slice(out.indexOf('[\n'))));
  if (!found) throw new Error('npm pack names no package');
  packed = found;
}, 5 * minutes);

test('the package is built, complete, and under 3 MB', () => {
  expect(packed.size).toBeLessThan(3_000_000);
  const paths = packed.files.map(({ path }) => path);
  expect([...new Set(paths.map((path) => path.split('/')[0] ?? ''))].toSorted()).toEqual([
    'CHANGELOG.md',
    'LICENSE',
    'README.md',
    'SECURITY.md',
    'bin',
    'config',
    'dist',
    'docs',
    'package.json',
  ]);
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' });
  const built = sources.filter((path) => path.endsWith('.ts')).map((path) => `dist/${path}`);
  expect(paths).toEqual(expect.arrayContaining(built.map((path) => path.replace(/ts$/, 'js'))));
  expect(paths).toContain('dist/commands/completion/commands.json');
  expect(paths).toContain('config/deploy/crm-mirror.service');
  const assets = readdirSync(join(root, 'src/console/assets'));
  expect(paths).toEqual(
    expect.arrayContaining(assets.map((name) => `dist/console/assets/${name}`)),
  );
});

test('the package holds each page of the docs that the program names, and no pictures', () => {
  const paths = packed.files.map(({ path }) => path);
  const written = ['src', 'config', 'bin'].flatMap((part) =>
    readdirSync(join(root, part), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'utf8')),
  );
  const pages = written.flatMap((text) => text.match(/docs\/[\w/-]+\.md/g) ?? []);
  expect(pages).toContain('docs/guards-and-approvals.md');
  expect(paths).toEqual(expect.arrayContaining(pages));
  expect(paths.filter((path) => path.startsWith('docs/') && !path.endsWith('.md'))).toEqual([]);
});

const hasRegistry = spawnSync('npm', ['ping', '--fetch-retries=0']).status === 0;

describe.skipIf(!hasRegistry)('installed by npm, skipped where no registry answers,', () => {
  beforeAll(() => {
    const options = ['--global', '--ignore-scripts', '--prefix', prefix];
    ran('npm', ['install', ...options, join(folder, packed.filename)]);
  }, 8 * minutes);

  /** Returns the folder of a Node of this version, from npm. */
  function nodeOf(version: string): string {
    const own = join(folder, `node-${version}`);
    const name = `node-${process.platform}-${process.arch}`;
    ran('npm', ['install', '--no-save', '--ignore-scripts', '--prefix', own, `${name}@${version}`]);
    const node = join(own, 'node_modules', name, 'bin/node');
    expect(existsSync(node)).toBe(true);
    return dirname(node);
  }

  test.each(['22', '24'])(
    'runs on Node %s: the help and the demo',
    (version) => {
      const { PATH } = process.env;
      const env = { ...process.env, PATH: [nodeOf(version), PATH].join(delimiter) };
      const run = (...argv: string[]) => {
        const program = join(prefix, 'bin/crm-mirror');
        const { stdout, stderr, status } = spawnSync(program, argv, { cwd: folder, env });
        return { out: String(stdout), said: String(stderr), status };
      };
      expect(run('--help')).toMatchObject({
        status: 0,
        said: '',
        out: expect.stringContaining('backfill'),
      });
      expect(run('complete', '--', 'sta').out).toMatch(/^status\t/);
      const demo = run('demo', '--dir', join(folder, `demo-${version}`));
      expect(demo).toMatchObject({ status: 0, out: expect.stringContaining('Plan') });
    },
    5 * minutes,
  );
});
