import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Busy } from '../../src/domain/errors.ts';
import { isLeased, takeLease } from '../../src/store/database/writer-lease.ts';
import { scratchFolder } from '../support/waiting.ts';

test('looking at a lease neither takes nor creates it', () => {
  const folder = scratchFolder();
  const path = join(folder, 'a.sqlite');
  expect(isLeased(path)).toBe(false);
  expect(existsSync(`${path}-lease`)).toBe(false);
  const lease = takeLease(path);
  expect(isLeased(path)).toBe(true);
  expect(() => takeLease(path)).toThrow(Busy);
  lease.release();
  expect(isLeased(path)).toBe(false);
  takeLease(path).release();
});
