import type { Parts } from '../../capabilities.ts';
import { decodeContact } from './contact-rows.ts';

/** The channels as parts of the platform that contacts are in. */
export function partsOf(channels: readonly string[]): Parts {
  return {
    names: channels,
    recorded(row) {
      const { channels: all } = decodeContact.recorded(row).value;
      return Object.keys(all).filter((channel) => all[channel]?.is === 'opt_in');
    },
    shown: (row) => Object.keys(decodeContact.observed(row).value.channels),
  };
}
