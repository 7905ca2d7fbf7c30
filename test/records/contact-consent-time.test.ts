/** When a person stated their consent, in a format and a zone of the CRM, and never too new. */
import { describe, expect, test } from 'vitest';
import { earliestInstant, parseDateFormat } from '../../src/domain/values/local-time.ts';
import { consentReader } from '../../src/records/contact/observe/consent-time.ts';
import { contactDesire } from '../../src/records/contact/observe/desired-contact.ts';

const at = (time: number | null | undefined) =>
  typeof time === 'number' ? new Date(time).toISOString().replace('.000', '') : time;
const berlin = { field: 'when', format: 'dd.MM.yyyy HH:mm', timezone: 'Europe/Berlin' };

describe('a time in a format and a zone', () => {
  test.each([
    ['01.07.2026 12:00', '2026-07-01T10:00:00Z'],
    ['01.12.2026 12:00', '2026-12-01T11:00:00Z'],
    ['01.12.2026  12:00', '2026-12-01T11:00:00Z'],
    // The clock shows these twice: the first time counts.
    ['25.10.2026 02:00', '2026-10-25T00:00:00Z'],
    ['25.10.2026 02:59', '2026-10-25T00:59:00Z'],
    ['25.10.2026 03:00', '2026-10-25T02:00:00Z'],
    // It never shows these: the earlier of the two instants that may be meant counts.
    ['29.03.2026 01:59', '2026-03-29T00:59:00Z'],
    ['29.03.2026 02:00', '2026-03-29T00:00:00Z'],
    ['29.03.2026 02:59', '2026-03-29T00:59:00Z'],
    ['29.03.2026 03:00', '2026-03-29T01:00:00Z'],
    // ISO 8601, as the cells of a workbook are.
    ['2026-07-01', '2026-06-30T22:00:00Z'],
    ['2026-07-01T12:00:00', '2026-07-01T10:00:00Z'],
    ['2026-07-01 12:00', '2026-07-01T10:00:00Z'],
    ['2026-07-01T12:00:00Z', '2026-07-01T12:00:00Z'],
  ])('%s is %s', (text, instant) => {
    expect(at(consentReader(berlin).read(text))).toBe(instant);
  });

  test.each([
    '1.7.2026 12:00',
    '30.02.2026 12:00',
    '01.07.26 12:00',
    '01.07.2026',
    '24.12.2026 24:00',
  ])('%s is none', (text) => {
    expect(consentReader(berlin).read(text)).toBeUndefined();
  });

  test('is none if it is empty', () => {
    expect(consentReader(berlin).read('')).toBeNull();
  });

  test('never looks newer than any instant at which the clock shows it', () => {
    for (const zone of [
      'Europe/Berlin',
      'America/New_York',
      'Australia/Lord_Howe',
      'Asia/Kathmandu',
    ]) {
      const format = new Intl.DateTimeFormat('sv', {
        timeZone: zone,
        dateStyle: 'short',
        timeStyle: 'medium',
      });
      const earlierMs = Array.from({ length: 24 * 366 }, (_, hour) => {
        const instant = Date.UTC(2026, 0, 1, 0, 30) + hour * 3_600_000;
        const shown = format.format(instant).replace(' ', 'T');
        return instant - earliestInstant(Date.parse(`${shown}Z`), zone);
      });
      expect([zone, Math.min(...earlierMs)]).toEqual([zone, 0]);
      expect(Math.max(...earlierMs)).toBeLessThanOrEqual(3_600_000);
    }
  });
});

test('a day begins at midnight in its zone, or in the earliest one', () => {
  const day = { field: 'when', format: 'd.M.yyyy' };
  expect(at(consentReader({ ...day, timezone: 'Europe/Berlin' }).read('1.7.2026'))).toBe(
    '2026-06-30T22:00:00Z',
  );
  expect(at(consentReader(day).read('1.7.2026'))).toBe('2026-06-30T10:00:00Z');
});

test('a text that two formats fit counts as the earlier time', () => {
  const reader = consentReader({ field: 'when', format: 'yyyy-dd-MM', timezone: 'UTC' });
  expect(at(reader.read('2026-03-04'))).toBe('2026-03-04T00:00:00Z');
  expect(at(reader.read('2026-04-03'))).toBe('2026-03-04T00:00:00Z');
});

test.each([
  ['dd.MM.yy', 'has the unknown part yy'],
  ['dd.MM', 'has no year'],
  ['yyyy-MM-dd HH', 'has no minute'],
  ['dd.dd.yyyy', 'has the day twice'],
  ["M''d''yyyy", 'has M directly before another number'],
  ["dd.MM.yyyy 'um HH:mm", 'has a quote without its counterpart'],
])('the format %s is refused: it %s', (format, reason) => {
  expect(parseDateFormat(format)).toMatchObject({ reason });
});

test('text of a format stands in quotes, and signs for themselves', () => {
  const format = "dd/MM/yyyy (HH:mm:ss 'Uhr')";
  const reader = consentReader({ field: 'when', format, timezone: 'Europe/Berlin' });
  expect(at(reader.read('01/07/2026 (12:00:30 Uhr)'))).toBe('2026-07-01T10:00:30Z');
});

describe('a record', () => {
  const desire = contactDesire(
    { id: 'id', email: 'email', consentAt: berlin, channels: [{ id: 'ch', subscription: 'news' }] },
    () => Date.UTC(2026, 8, 1),
  );
  const row = (when: string) =>
    desire({ id: '1', email: 'a@example.com', news: 'yes', when }, 'line 2');

  test('has the time that its format and zone state', () => {
    expect(JSON.parse(row('01.07.2026 12:00').body)).toMatchObject({
      channels: { ch: 'opt_in' },
      consentAt: Date.UTC(2026, 6, 1, 10),
    });
  });

  test('is invalid with another form, so that it opts nobody in', () => {
    const { body, invalid } = row('07/01/2026');
    expect(JSON.parse(body)).toMatchObject({ channels: { ch: null }, consentAt: null });
    expect(invalid).toMatchObject({ reason: '"when" has not the form dd.MM.yyyy HH:mm' });
  });
});
