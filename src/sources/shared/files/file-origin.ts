/**
 * Where the bytes of a file come from: a path, an address, standard input. Each tells of its own
 * what it was that was read, and whether it came whole.
 */
import type { Clock, Random } from '../../../domain/clock.ts';
import { Invalid } from '../../../domain/errors.ts';
import { placeOf } from '../../../domain/values/config-file.ts';
import type { Flaw } from '../read-certificate.ts';
import { chunksOf, opened as openedAt } from './file-bytes.ts';
import type { Input } from './standard-input.ts';
import type { PlacedOptions } from './file-options.ts';
import { type FileState, isStill, readingOf, sameState, settled, stateOf } from './file-state.ts';
import { addressOrigin } from './web-file.ts';
import type { Origin } from './origin.ts';

export interface FileSurroundings {
  clock: Clock;
  random: Random;
  /** Undefined: there is none. */
  input?: Input | undefined;
}

export function originOf(options: PlacedOptions, surroundings: FileSurroundings): Origin {
  const { input, clock } = surroundings;
  const place = placeOf(options.path);
  if (place === 'address') return addressOrigin(options, surroundings);
  if (place === 'file') return fileOrigin(options.path, clock);
  if (input) return input;
  throw new Invalid('there is no standard input to read from here → name a file');
}

/** Read anew each time. Waits, at most a minute, for a file that is still being written. */
function fileOrigin(path: string, clock: Clock): Origin {
  let latest: FileState | undefined;
  return {
    name: path,
    isPacked: /\.gz$/i.test(path),
    async open(signal) {
      const before = await settled(path, { clock, signal });
      latest = before;
      const handle = await openedAt(path);
      let count = 0;
      async function* bytes() {
        for await (const chunk of chunksOf(handle, { path, signal })) {
          count += chunk.length;
          yield chunk;
        }
      }
      return {
        reading: readingOf(before),
        bytes: bytes(),
        async flaws(whole) {
          const after = [await stateOf(handle), await stateOf(path)];
          if (after.some((state) => !sameState(state, before))) {
            return [{ why: 'the file changed while it was read', fix: 'read it again' }];
          }
          return whole ? shortFlaws(count, before.size) : [];
        },
        close: () => handle.close(),
      };
    },
    still: (reading) => isStill(path, latest, reading),
  };
}

function shortFlaws(count: number, size: number): Flaw[] {
  if (count === size) return [];
  return [{ why: `${count} of ${size} bytes were read`, fix: 'read it again' }];
}
