/** Finds the column of each channel of the platform, by name. */
import type { Chosen } from './column-words.ts';

/** A channel as the platform names it. */
export interface PlatformChannel {
  id: string;
  name: string;
}

/**
 * Returns the columns that are named like a channel, or like its id. Names have to be equal but for
 * case, spaces and punctuation: `No newsletter` is not the consent to `Newsletter`. A name that
 * fits several channels or several columns is left out.
 */
export function matchChannels(
  columns: readonly Chosen[],
  platform: readonly PlatformChannel[],
): (Chosen & PlatformChannel)[] {
  const pairs = platform.flatMap((channel) => {
    const { id, name } = channel;
    const names = [bare(name), bare(id), bare(id.replace(/^[a-z]{1,4}_/i, ''))];
    const fitting = columns.filter(
      ({ column }) => bare(column.name) !== '' && names.includes(bare(column.name)),
    );
    return fitting.map((chosen) => ({ ...chosen, ...channel }));
  });
  const single = pairs.filter(
    (pair) =>
      pairs.filter(({ id }) => id === pair.id).length === 1 &&
      pairs.filter(({ column }) => column === pair.column).length === 1,
  );
  const why = "it is named like the platform's channel";
  return single.map((pair) => ({ ...pair, why: `${why} ${pair.name}` }));
}

/** Returns a name without case, spaces, punctuation and the folders of a dotted path. */
function bare(name: string): string {
  const last = name.split('.').findLast((part) => part !== '') ?? '';
  return last.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '');
}
