/** Which failures of the system are no bug, and what they say. */
import { expect, test } from 'vitest';
import { explain, isBug, isDiskFull } from '../../../src/compose/output/failure-report.ts';

test('a file that is mounted by itself, and so cannot be replaced, is no bug', () => {
  const message = "EBUSY: resource busy or locked, rename 'users.yaml.new' -> 'users.yaml'";
  const error = Object.assign(new Error(message), { code: 'EBUSY', path: 'users.yaml.new' });
  expect(isBug(error)).toBe(false);
  expect(explain(error).text).toMatch(/users\.yaml' \(EBUSY\) → mend the disk or the permissions/);
});

// No file system of this kind has space that is free.
test.each([
  ['SQLITE_IOERR_SHMSIZE', '/proc/a.sqlite', 'the disk is full; nothing is lost → free some space'],
  ['SQLITE_IOERR_READ', '/tmp/a.sqlite', 'disk I/O error (SQLITE_IOERR_READ) → mend the disk'],
  ['EPERM', '/tmp/a.sqlite-lease', 'this user is not allowed to use it (EPERM) → run this as the'],
])('%s at %s', (code, path, says) => {
  const error = Object.assign(new Error('disk I/O error'), { code, path });
  expect(isDiskFull(error)).toBe(says.includes('full'));
  expect(explain(error)).toMatchObject({
    code: 1,
    text: expect.stringContaining(`${path}: ${says}`),
  });
});
