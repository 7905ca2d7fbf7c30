import type { Parts } from '../../record-type.ts';
import { observedBody, recordedBody } from './contact-state.ts';

/** The channels as parts of the platform that contacts are in. */
export function partsOf(channels: readonly string[]): Parts {
  return {
    names: channels,
    recorded(row) {
      const { channels: all } = recordedBody.parse(JSON.parse(row.body));
      return Object.keys(all).filter((channel) => all[channel]?.is === 'opt_in');
    },
    shown: (row) => Object.keys(observedBody.parse(JSON.parse(row.body)).channels),
  };
}
