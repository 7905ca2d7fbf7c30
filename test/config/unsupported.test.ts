import { afterAll, describe, expect, it } from 'vitest';
import { unsupported } from '../../src/config/unsupported.ts';
import { makeFolder, minimal } from './folder.ts';

const { mistakes, remove } = makeFolder();
afterAll(remove);

const contacts = (extra: string) =>
  minimal(
    `contacts:\n  source: { type: csv, path: p }\n  id: i\n  email: e\n` +
      `  channels: [{ id: a, subscription: s }]\n${extra}`,
  );
const block = '→ remove the block';

/** Of each row of the table: what asks for it, and the one line it is answered with. */
const rows: Record<string, [content: string, line: string][]> = {
  'contacts.webhook': [
    [
      contacts('  webhook: { format: standard, secret: ${NONE} }'),
      '11:3  contacts.webhook  receiving events is ~  → remove it',
    ],
  ],
  'schedule.sentinel': [
    [
      minimal('schedule: { sentinel: "* * * * *" }'),
      '6:13  schedule.sentinel  the sentinel is ~  → remove it',
    ],
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
