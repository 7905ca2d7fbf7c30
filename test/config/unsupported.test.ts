import { afterAll, describe, expect, it } from 'vitest';
import { unsupported } from '../../src/config/unsupported.ts';
import { makeFolder, minimal } from './folder.ts';

const { mistakes, remove } = makeFolder();
afterAll(remove);

const contacts = (extra: string, { type = 'csv' } = {}) =>
  minimal(
    `contacts:\n  source: { type: ${type}, path: p }\n  id: i\n  email: e\n` +
      `  channels: [{ id: a, subscription: s }]\n${extra}`,
  );
const templates = (type: string) => minimal().replace('type: directory', `type: ${type}`);
const block = '→ remove the block';

/** Of each row of the table: what asks for it, and the one line it is answered with. */
const rows: Record<string, [content: string, line: string][]> = {
  'contacts.webhook': [
    [
      contacts('  webhook: { format: standard, secret: ${NONE} }'),
      '11:3  contacts.webhook  receiving events is ~  → remove it',
    ],
  ],
  'contacts.source.type': ['ndjson', 'http'].map((type) => [
    contacts('', { type }),
    '7:13  contacts.source.type  this source is ~  → use csv',
  ]),
  'templates.source.type': ['ndjson', 'http'].map((type) => [
    templates(type),
    '4:24  templates.source.type  this source is ~  → use directory',
  ]),
  schedule: [
    [minimal('schedule: { full: "0 3 * * *" }'), `6:1  schedule  a schedule is ~  ${block}`],
  ],
  server: [
    [minimal('server: { port: 1, token: ${NONE:-} }'), `6:1  server  a server is ~  ${block}`],
  ],
};

describe('what this version does not do', () => {
  const cases = Object.entries(rows).flatMap(([path, found]) =>
    found.map(([content, line]) => ({ path, content, line })),
  );

  it.each(cases)('$path is refused, with one line: $line', ({ content, line }) => {
    const text = line.replace('~', 'not supported by this version');
    expect(mistakes(content)).toEqual([`mirror.yaml:${text}`]);
  });

  it('is refused without exception', () => {
    expect(Object.keys(rows)).toEqual(unsupported.map(({ path }) => path.join('.')));
  });

  it('may be named as long as nothing is asked for', () => {
    const harmless = ['schedule: ~', 'server: null'];
    expect(mistakes(minimal(harmless.join('\n')))).toBeUndefined();
    expect(mistakes(contacts('  include:\n  webhook:'))).toBeUndefined();
  });
});
