/** Which failures of the system are no bug, and what they say. */
import { expect, test } from 'vitest';
import { explain, isBug } from '../../../src/compose/output/failure-report.ts';

test('a file that is mounted by itself, and so cannot be replaced, is no bug', () => {
  const message = "EBUSY: resource busy or locked, rename 'users.yaml.new' -> 'users.yaml'";
  const error = Object.assign(new Error(message), { code: 'EBUSY', path: 'users.yaml.new' });
  expect(isBug(error)).toBe(false);
  expect(explain(error).text).toMatch(/users\.yaml' \(EBUSY\) → mend the disk or the permissions/);
});
