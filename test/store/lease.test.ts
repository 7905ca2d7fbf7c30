import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { Busy } from '../../src/domain/errors.ts';
import { isLeased, takeLease } from '../../src/store/database/writer-lease.ts';

test('looking at a lease neither takes nor creates it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-lease-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
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
