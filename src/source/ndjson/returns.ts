/** Who left, appended to a file with one JSON object a line. */
import type { Return } from '../../model/returned.ts';
import { appendLines, linesThere, lookAtFile } from '../append.ts';
import type { Returns, Told } from '../returns.ts';
import type { NdjsonReturnsOptions } from './options.ts';

const AT_ONCE = 500;

export function ndjsonReturns({ path }: NdjsonReturnsOptions): Returns {
  return {
    most: AT_ONCE,
    takes: () => true,
    async *tell(batch): AsyncGenerator<Told, void> {
      appendLines(path, { lines: batch.map(lineOf) });
      for (const _ of batch) yield { is: 'told' };
    },
    arrived(batch) {
      const there = linesThere(path, batch.map(lineOf));
      return new Set(batch.filter((one) => there.has(lineOf(one))).map(({ id }) => id));
    },
    look() {
      lookAtFile(path);
      return `appended to ${path}`;
    },
  };
}

function lineOf({ id, email, crmId, channel, cause, after, by }: Return): string {
  return JSON.stringify({
    return: id,
    email,
    crmId: crmId === '' ? null : crmId,
    channel,
    cause,
    after: after === null ? null : new Date(after).toISOString(),
    by: new Date(by).toISOString(),
  });
}
