/**
 * Decides what follows for a channel from the one that it replaces: who unsubscribed from that one,
 * or was opted out of it by `undo`, is not opted in here.
 */
import { isTakenBack } from './own-opt-outs.ts';
import type { Channels } from './past-consent.ts';
import { isTheirs } from '../observe/channel-observation.ts';
import type { ContactStates } from '../observe/contact-rows.ts';
import type { RecordedContact } from '../observe/contact-state.ts';

type Past = Pick<RecordedContact, 'channels' | 'outgrown'>;

/** Returns the channel that this one replaces, unless the person has joined this one since. */
export function replacedBy(
  channel: string,
  { replaces }: Pick<Channels, 'replaces'>,
  outgrown: readonly string[],
): string | undefined {
  return outgrown.includes(channel) ? undefined : replaces.get(channel);
}

/** Returns whether the person left the replaced channel and has not joined this one since. */
export function hasLeftReplaced({ channels, outgrown }: Past, channel: string, rules: Channels) {
  const replaced = replacedBy(channel, rules, outgrown);
  return replaced !== undefined && isTheirs(channels[replaced]);
}

/** Returns whether `undo` opted the person out of the replaced channel, and that still counts. */
export function isUndoneInReplaced(
  { channels, outgrown }: Past,
  channel: string,
  { rules, states }: { rules: Channels; states: Pick<ContactStates, 'desired' | 'by'> },
): boolean {
  const replaced = replacedBy(channel, rules, outgrown);
  const is = replaced === undefined ? undefined : channels[replaced];
  // What the CRM stated about the replaced channel, it states about this one now.
  return is?.is === 'opt_out' && is.undone !== undefined && !isTakenBack(is, channel, states);
}

/**
 * Returns the channels whose statements tell whether an opt-out by `undo` still counts: the channel
 * itself or, if the configuration no longer has it, those that replace it.
 */
export function statingFor(channel: string, { channels, replaces }: Channels): string[] {
  if (channels.includes(channel)) return [channel];
  return channels.filter((one) => replaces.get(one) === channel);
}
