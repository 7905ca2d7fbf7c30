/**
 * Finds out which channels the platform has, and the column of each by name. No operation of the
 * platform's API lists channels, but each contact names those that it is in. A channel without
 * contacts is not found.
 */
import { isExpected } from '../../domain/errors.ts';
import { createPlatform } from '../../platform/platform.ts';
import { addressFault } from '../../sources/shared/option-fields.ts';
import type { Shell } from '../../compose/process-shell.ts';
import type { Chosen } from './column-words.ts';

/** The address of the local emulator, which is the platform if no other is named. */
export const localPlatform = 'http://127.0.0.1:4010';

const mostPages = 3;
const pageSize = 100;
const timeoutMs = 10_000;

/**
 * Reads at most 300 contacts of the platform, if the environment holds its key. `note` says why
 * there are no channels if the platform could not be asked.
 */
export async function platformChannels({
  env,
  stop,
}: Shell): Promise<{ channels: PlatformChannel[]; note?: string }> {
  const apiKey = env['PLATFORM_API_KEY'] ?? '';
  const url = env['PLATFORM_URL'] || localPlatform;
  if (apiKey === '' || addressFault(url, false)) return { channels: [] };
  const platform = createPlatform({ url, apiKey, timeoutMs, maxAttempts: 2, signal: stop });
  const channels = new Map<string, PlatformChannel>();
  try {
    for (let page = 1; page <= mostPages; page += 1) {
      const { contacts, total } = await platform.contacts.list({ page, limit: pageSize });
      const all = contacts.flatMap((contact) => contact.channels);
      for (const { id, name } of all) channels.set(id, { id, name: name ?? id });
      if (page * pageSize >= total) break;
    }
    return { channels: [...channels.values()] };
  } catch (error) {
    stop.throwIfAborted();
    if (!isExpected(error)) throw error;
    return { channels: [], note: `the channels of the platform are not known: ${error.message}` };
  } finally {
    await platform.close();
  }
}

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
