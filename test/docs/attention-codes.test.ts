/** The pages name every code of `attention`: a monitor or a receiver may meet each of them. */
import { expect, test } from 'vitest';
import { causes } from '../../src/views/status/attention.ts';
import { readPages } from '../support/docs/page-blocks.ts';

test.each(['docs/metrics.md', 'docs/notifications.md'])('%s names every code', (path) => {
  const text = readPages().find((page) => page.path === path)?.text ?? '';
  expect(Object.keys(causes).filter((code) => !text.includes(`\`${code}\``))).toEqual([]);
});
