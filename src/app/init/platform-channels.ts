/**
 * Finds out which channels the platform has. No operation of its API lists channels, but each
 * contact names those that it is in. A channel without contacts is not found.
 */
import { isExpected } from '../../domain/errors.ts';
import { createPlatform } from '../../platform/platform.ts';
import { addressFault } from '../../sources/shared/option-fields.ts';
import type { Shell } from '../../compose/process-shell.ts';

export interface PlatformChannel {
  id: string;
  name: string;
}

/** The address of the local emulator, which is the platform if no other is named. */
export const localPlatform = 'http://127.0.0.1:4010';

const mostRead = 300;
const timeoutMs = 10_000;

/**
 * Reads at most 300 contacts of the platform, if the environment holds its key. `note` says why
 * there are no channels if the platform could not be asked.
 */
export async function platformChannels(
  env: Shell['env'],
  stop: AbortSignal,
): Promise<{ channels: PlatformChannel[]; note?: string }> {
  const apiKey = env['PLATFORM_API_KEY'] ?? '';
  const url = env['PLATFORM_URL'] || localPlatform;
  if (apiKey === '' || addressFault(url, false)) return { channels: [] };
  const platform = createPlatform({ url, apiKey, timeoutMs, maxAttempts: 2, signal: stop });
  const channels = new Map<string, PlatformChannel>();
  try {
    let read = 0;
    for await (const contact of platform.contacts.all({ limit: 100 })) {
      for (const { id, name } of contact.channels) channels.set(id, { id, name: name ?? id });
      read += 1;
      if (read === mostRead) break;
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
