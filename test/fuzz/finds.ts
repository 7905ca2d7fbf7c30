/** Inputs that were found: each a file below finds/, replayed by finds.test.ts for ever. */
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';

/** In the order in which they are played. */
export const areaNames = [
  'config',
  'csv',
  'ndjson',
  'conditions',
  'templates',
  'webhooks',
  'emulator',
];

const root = join(import.meta.dirname, 'finds');

/** Answers where it is kept. */
export async function keep(area: string, input: unknown): Promise<string> {
  const text = `${JSON.stringify(input, undefined, 2)}\n`;
  const name = createHash('sha256').update(text).digest('hex').slice(0, 12);
  const path = join(root, area, `${name}.json`);
  await mkdir(join(root, area), { recursive: true });
  await writeFile(path, text);
  return relative(join(import.meta.dirname, '../..'), path);
}

/** All of an area, by the names of their files. */
export async function keptOf(area: string): Promise<[name: string, input: unknown][]> {
  const names = await readdir(join(root, area)).catch(() => []);
  const read = async (name: string): Promise<[string, unknown]> => [
    name,
    JSON.parse(await readFile(join(root, area, name), 'utf8')),
  ];
  return Promise.all(names.map(read));
}
