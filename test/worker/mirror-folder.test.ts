/** A folder of configurations that is followed: which files count, when, and why not. */
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config/load-config.ts';
import { Invalid } from '../../src/domain/errors.ts';
import { systemClock } from '../../src/http/system-clock.ts';
import {
  type FolderFiles,
  isRefused,
  openMirrorFolder,
  workable,
} from '../../src/worker/mirror-folder.ts';
import { untilHolds } from '../support/waiting.ts';

const defaults = JSON.stringify({
  platform: { url: 'https://api.example.com', apiKey: 'k' },
  templates: { source: { type: 'directory', path: 't' } },
  redis: 'redis://127.0.0.1',
  schedule: { full: '0 3 * * *' },
});

const mirror = (name: string, more = {}): string =>
  JSON.stringify({ mirror: name, snapshot: `${name}.sqlite`, ...more });

/** A folder with defaults and the files of mirrors, followed until the test ends. */
async function followed(files: Record<string, string>) {
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-folder-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
  for (const [name, text] of Object.entries({ 'defaults.yaml': defaults, ...files })) {
    write(name, text);
  }
  const notes: string[] = [];
  const opened = openMirrorFolder({
    folder,
    clock: systemClock,
    load: (file) => workable(loadConfig(file, {})),
    note: (line) => notes.push(line),
    settleMs: 20,
    rescanMs: 200,
  });
  const stop = new AbortController();
  let last = await opened.read();
  const all: FolderFiles[] = [last];
  const following = opened.follow((next) => {
    last = next;
    all.push(next);
  }, stop.signal);
  onTestFinished(async () => {
    stop.abort();
    await following;
  });
  /** What the folder shows: the mirror of each file, or the first words of why not. */
  const shown = (): Record<string, string> =>
    Object.fromEntries(
      [...last].map(([file, one]) => [
        basename(file),
        isRefused(one) ? one.why.replaceAll(`${folder}/`, '') : one.mirror,
      ]),
    );
  return {
    folder,
    write,
    notes,
    all,
    shown,
    configOf: (name: string) => last.get(join(folder, name)),
    remove: (name: string) => rmSync(join(folder, name)),
    until: async (expected: Record<string, unknown>) =>
      untilHolds(() => expect(shown()).toEqual(expected)),
  };
}

it('follows files that are added, changed, mended and removed, and leaves the others alone', async () => {
  const { write, remove, until, configOf } = await followed({ 'acme.yaml': mirror('acme') });
  await until({ 'acme.yaml': 'acme' });
  const acme = configOf('acme.yaml');
  write('beta.yaml', '{ mirror: Beta! }');
  await until({
    'acme.yaml': 'acme',
    'beta.yaml': expect.stringContaining('beta.yaml:1:11  mirror'),
  });
  write('beta.yaml', mirror('beta'));
  await until({ 'acme.yaml': 'acme', 'beta.yaml': 'beta' });
  write('beta.yaml', mirror('gamma'));
  await until({ 'acme.yaml': 'acme', 'beta.yaml': 'gamma' });
  expect(configOf('acme.yaml')).toBe(acme);
  remove('beta.yaml');
  await until({ 'acme.yaml': 'acme' });
  expect(configOf('acme.yaml')).toBe(acme);
});

it('reads every file again when the defaults change, and names the place of a mistake there', async () => {
  const { write, until, all } = await followed({
    'acme.yaml': mirror('acme'),
    'beta.yaml': mirror('beta', { schedule: { full: '0 4 * * *' } }),
  });
  write('defaults.yaml', defaults.replace('0 3 * * *', 'often'));
  await until({
    'acme.yaml': expect.stringContaining('schedule.full'),
    // It has a schedule of its own, so it does not have this mistake.
    'beta.yaml': 'beta',
  });
  const refused = [...(all.at(-1)?.values() ?? [])].find(isRefused);
  expect(refused?.why).toContain('defaults.yaml:1:');
  write('defaults.yaml', defaults.replace('0 3 * * *', '0 5 * * *'));
  await until({ 'acme.yaml': 'acme', 'beta.yaml': 'beta' });
});

it('reads a file again when the file of its API key changes', async () => {
  const { write, until, configOf, folder } = await followed({});
  mkdirSync(join(folder, 'keys'));
  write('keys/acme', 'first');
  write('acme.yaml', mirror('acme', { platform: { apiKey: null, apiKeyFile: 'keys/acme' } }));
  const keyIs = async (key: string) =>
    untilHolds(() => expect(configOf('acme.yaml')).toMatchObject({ platform: { apiKey: key } }));
  await keyIs('first');
  write('keys/acme', 'second');
  await keyIs('second');
  await until({ 'acme.yaml': 'acme' });
});

it('refuses both of two files with one mirror, but not the one that was there before', async () => {
  const { write, remove, until } = await followed({
    'acme.yaml': mirror('acme'),
    'copy-1.yaml': mirror('copied'),
    'copy-2.yaml': mirror('copied'),
  });
  const both = {
    'copy-1.yaml': expect.stringContaining('copy-2.yaml is named copied, too'),
    'copy-2.yaml': expect.stringContaining('copy-1.yaml is named copied, too'),
  };
  await until({ 'acme.yaml': 'acme', ...both });
  write('aaa.yaml', mirror('other', { snapshot: 'acme.sqlite' }));
  const rival = expect.stringContaining('acme.yaml has the same snapshot');
  await until({ 'acme.yaml': 'acme', 'aaa.yaml': rival, ...both });
  remove('copy-2.yaml');
  remove('acme.yaml');
  await until({ 'aaa.yaml': 'other', 'copy-1.yaml': 'copied' });
});

it('goes on as it is while the folder looks as if it was not mounted', async () => {
  const { folder, notes, until, all, write } = await followed({ 'acme.yaml': mirror('acme') });
  const away = `${folder}-away`;
  onTestFinished(() => rmSync(away, { recursive: true, force: true }));
  renameSync(folder, away);
  await untilHolds(() => expect(notes.join()).toContain('cannot be read (ENOENT)'));
  mkdirSync(folder);
  await untilHolds(() => expect(notes.join()).toContain('is empty now'));
  write('acme.yaml', mirror('acme'));
  await untilHolds(() => expect(notes.join()).toContain('defaults.yaml is gone'));
  expect(all).toHaveLength(1);
  expect(notes.every((line) => line.endsWith('the mirrors go on as they are'))).toBe(true);
  write('defaults.yaml', defaults);
  write('beta.yaml', mirror('beta'));
  await until({ 'acme.yaml': 'acme', 'beta.yaml': 'beta' });
});

it('does not count a file that is there for a moment, and other files never', async () => {
  const { write, remove, until, all } = await followed({ 'notes.txt': 'x', '.acme.yaml': 'x' });
  for (let at = 0; at < 5; at += 1) {
    write('acme.yaml~', 'half');
    write('acme.yaml', '{ mirr');
    remove('acme.yaml');
  }
  write('acme.yaml', mirror('acme'));
  await until({ 'acme.yaml': 'acme' });
  expect(all.flatMap((files) => [...files.values()]).filter(isRefused)).toEqual([]);
});

it('refuses a folder that is not there', async () => {
  const opened = openMirrorFolder({
    folder: '/nowhere/at/all',
    clock: systemClock,
    load: (file) => workable(loadConfig(file, {})),
    note: () => undefined,
  });
  await expect(opened.read()).rejects.toThrow(Invalid);
});
