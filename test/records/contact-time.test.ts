/** Times of the platform. */
import { expect, test } from 'vitest';
import { timeOf } from '../../src/records/contact/observe/observed-contact.ts';

test.each([
  ['2026-01-01T10:00:00Z', 10],
  ['2026-01-01T10:00:00.000Z', 10],
  ['2026-01-01T10:00:00', 10],
  ['2026-01-01 10:00:00.000', 10],
  ['2026-01-01T12:00:00+02:00', 10],
  ['2026-01-01', 0],
])('%s is in UTC unless it says otherwise', (text, hours) => {
  expect(timeOf(text)).toBe(Date.UTC(2026, 0, 1, hours));
});
