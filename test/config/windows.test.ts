/** Windows: when they are open, when they open next, and what is said of a wrong one. */
import { afterAll, describe, expect, it } from 'vitest';
import {
  type ChangeWindow,
  hoursOf,
  isClosed,
  opening,
} from '../../src/domain/guards/change-window.ts';
import { makeFolder, minimal } from '../support/config/config-folder.ts';

const { load, mistakes, remove } = makeFolder();
afterAll(remove);

const berlin = 'Europe/Berlin';

function windowOf(text: string, timezone?: string): ChangeWindow {
  const allow = hoursOf(text);
  if ('reason' in allow) throw new Error(allow.reason);
  return { allow, timezone };
}

// 2026-11-23 is a Monday. Berlin changes its clocks on 29 March and 25 October, at 01:00 UTC.
type Row = [text: string, timezone: string, at: string, opens: string | undefined, words?: string];
// prettier-ignore
const table: Row[] = [
  ['Mon-Fri 08:00-18:00', 'UTC', '2026-11-23T08:00:00Z', undefined],
  ['Mon-Fri 08:00-18:00', 'UTC', '2026-11-23T17:59:59Z', undefined],
  ['Mon-Fri 08:00-18:00', 'UTC', '2026-11-23T18:00:00Z', '2026-11-24T08:00:00Z', 'Tue 08:00'],
  ['Mon-Fri 08:00-18:00', 'UTC', '2026-11-23T07:59:59Z', '2026-11-23T08:00:00Z', 'Mon 08:00'],
  ['Mon-Fri 08:00-18:00', 'UTC', '2026-11-20T18:00:00Z', '2026-11-23T08:00:00Z', 'Mon 08:00'],
  ['Sat,Sun 10:00-12:00', 'UTC', '2026-11-22T11:00:00Z', undefined],
  ['Sat,Sun 10:00-12:00', 'UTC', '2026-11-22T12:00:00Z', '2026-11-28T10:00:00Z', 'Sat 10:00'],
  ['Fri-Mon,Wed 10:00-12:00', 'UTC', '2026-11-23T11:00:00Z', undefined],
  ['Fri-Mon,Wed 10:00-12:00', 'UTC', '2026-11-24T11:00:00Z', '2026-11-25T10:00:00Z', 'Wed 10:00'],
  ['Mon-Fri 08:00-12:00; Mon-Fri 13:07-18:00', 'UTC', '2026-11-23T12:30:00Z', '2026-11-23T13:07:00Z', 'Mon 13:07'],
  ['22:00-06:00', 'UTC', '2026-11-23T23:00:00Z', undefined],
  ['22:00-06:00', 'UTC', '2026-11-24T05:59:00Z', undefined],
  ['22:00-06:00', 'UTC', '2026-11-24T06:00:00Z', '2026-11-24T22:00:00Z', 'Tue 22:00'],
  // Over midnight, the hours belong to the day on which they begin.
  ['Fri 22:00-06:00', 'UTC', '2026-11-28T05:00:00Z', undefined],
  ['Fri 22:00-06:00', 'UTC', '2026-11-27T05:00:00Z', '2026-11-27T22:00:00Z', 'Fri 22:00'],
  ['Mon 00:00-24:00', 'UTC', '2026-11-23T23:59:59Z', undefined],
  ['Mon 00:00-24:00', 'UTC', '2026-11-24T00:00:00Z', '2026-11-30T00:00:00Z', 'Mon 00:00'],
  // Local hours: Berlin is one hour ahead of UTC in winter, two in summer.
  ['Mon-Fri 08:00-18:00', berlin, '2026-11-23T07:00:00Z', undefined],
  ['Mon-Fri 08:00-18:00', berlin, '2026-11-23T06:59:00Z', '2026-11-23T07:00:00Z', 'Mon 08:00'],
  ['Mon-Fri 08:00-18:00', berlin, '2026-03-27T17:00:00Z', '2026-03-30T06:00:00Z', 'Mon 08:00'],
  ['Mon-Fri 08:00-18:00', berlin, '2026-10-23T16:00:00Z', '2026-10-26T07:00:00Z', 'Mon 08:00'],
  // 02:00 to 03:00 does not exist on 29 March.
  ['Sun 02:00-03:00', berlin, '2026-03-29T00:59:59Z', '2026-04-05T00:00:00Z', 'Sun 02:00'],
  ['Sun 02:30-04:00', berlin, '2026-03-29T00:59:59Z', '2026-03-29T01:00:00Z', 'Sun 03:00'],
  ['Sat 22:00-02:30', berlin, '2026-03-29T01:00:00Z', '2026-04-04T20:00:00Z', 'Sat 22:00'],
  // It exists twice on 25 October.
  ['Sun 02:00-03:00', berlin, '2026-10-25T00:30:00Z', undefined],
  ['Sun 02:00-03:00', berlin, '2026-10-25T01:30:00Z', undefined],
  ['Sun 02:15-02:45', berlin, '2026-10-25T00:50:00Z', '2026-10-25T01:15:00Z', 'Sun 02:15'],
  ['Sun 02:00-03:00', berlin, '2026-10-25T02:00:00Z', '2026-11-01T01:00:00Z', 'Sun 02:00'],
  ['09:00-10:00', 'Asia/Kathmandu', '2026-11-23T03:14:00Z', '2026-11-23T03:15:00Z', 'Mon 09:00'],
];

it.each(table)('%s (%s) at %s opens %s', (text, timezone, at, opens, words) => {
  const windows = [windowOf(text)];
  const time = { at: Date.parse(at), timezone };
  expect(isClosed(windows, 'opt_in', time)).toBe(opens !== undefined);
  if (opens === undefined) return;
  expect(opening(windows, 'opt_in', time)).toEqual({
    at: Date.parse(opens),
    words: `${words} ${timezone}`,
  });
});

describe('several windows', () => {
  const at = Date.parse('2026-11-23T07:30:00Z');
  const time = { at, timezone: 'UTC' };

  it('allow a class if one of them does, each by its own clock', () => {
    const windows = [windowOf('10:00-11:00'), windowOf('08:00-09:00', berlin)];
    expect(isClosed(windows, 'opt_in', time)).toBe(false);
    expect(isClosed(windows.slice(0, 1), 'opt_in', time)).toBe(true);
    const opens = opening([windowOf('07:44-07:50'), windowOf('07:40-07:50')], 'opt_in', time);
    expect(opens?.words).toBe('Mon 07:40 UTC');
  });

  it('leave a class that none of them is about alone', () => {
    const windows: ChangeWindow[] = [{ ...windowOf('10:00-11:00'), for: ['opt_in'] }];
    expect(isClosed(windows, 'delete', time)).toBe(false);
    expect(isClosed([], 'opt_in', time)).toBe(false);
    expect(isClosed([windowOf('10:00-11:00')], 'opt_out', time)).toBe(false);
  });
});

describe('a mistake in a window', () => {
  const usage = "write 'Mon-Fri 08:00-18:00', or several with ; between them";
  const days = 'use Mon, Tue, Wed, Thu, Fri, Sat, Sun';
  it.each([
    ['always', 13, `is no window  → ${usage}`],
    ['Mon-Fri', 13, `is no window  → ${usage}`],
    ['Mon-Fri 8-18', 13, `is no window  → ${usage}`],
    ['08:00-18:00;', 25, `is no window  → ${usage}`],
    ['08:00-18:00; Mo 08:00-12:00', 26, `names a day that does not exist  → ${days}`],
    ['Mon-Wed-Fri 08:00-18:00', 13, `names a day that does not exist  → ${days}`],
    ['Mon, 08:00-18:00', 13, `names a day that does not exist  → ${days}`],
    ['Mon 08:00-25:00', 13, 'holds a time that does not exist  → write 00:00 to 24:00'],
    ['Mon 08:60-09:00', 13, 'holds a time that does not exist  → write 00:00 to 24:00'],
    ['Mon 24:00-06:00', 13, 'holds a time that does not exist  → write 00:00 to 24:00'],
    ['Mon 08:00-08:00', 13, 'ends when it begins  → write 00:00-24:00 for the whole day'],
  ])('%j is reported with its place', (text, column, expected) => {
    const found = mistakes(minimal(`windows:\n  - allow: '${text}'\n`));
    expect(found).toEqual([`mirror.yaml:7:${column}  windows[0].allow  ${expected}`]);
  });

  it('may be a class of stated opt-outs, or an unknown time zone', () => {
    const line = `{ allow: '08:00-18:00', for: [opt_out], timezone: Berlin }`;
    expect(mistakes(minimal(`windows: [${line}]`))).toEqual([
      expect.stringContaining('windows[0].for[0]  is not known here  → use delete or opt_in or'),
      expect.stringContaining('windows[0].timezone  is no time zone'),
    ]);
  });

  it('is not the case of a whole one', () => {
    const line = `{ allow: 'Mon-Fri 08:00-18:00', for: [opt_in, template], timezone: ${berlin} }`;
    expect(load(minimal(`windows: [${line}]`)).windows).toMatchObject([
      { allow: [{ from: 480, to: 1080 }], for: ['opt_in', 'template'], timezone: berlin },
    ]);
  });
});
