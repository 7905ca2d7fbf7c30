/** The engine holds in worlds in which a backup is put back. */
import { expect, test } from 'vitest';
import { extent } from '../support/extent.ts';
import { play } from './play.ts';

const seeds = extent(8, 200);

test(`nobody is opted in or reported by what a backup says, in ${seeds} seeds`, async () => {
  const failures: unknown[] = [];
  await play(
    Array.from({ length: seeds }, (_, at) => at + 1),
    {
      kind: 'restore',
      takeRows: () => [],
      heard: (news) => void (news.is === 'failure' && failures.push(news)),
    },
  );
  expect(failures).toEqual([]);
}, 3_600_000);
