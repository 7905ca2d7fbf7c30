/**
 * The facts that a platform was seen to show where its specification says nothing. The snapshot
 * keeps them; a fact that is undefined is not known yet.
 *
 *   evidence                                          what is known then
 *   a creation shows no channel but its own           contacts name their own channels only
 *   a creation shows other channels as well           they name all; these are the defaults, and an
 *                                                     opt-out outweighs an opt_in seen before
 *   contacts of one page name different channels      contacts name their own channels only
 *   all contacts name the same channels, those of     not that they name their own channels only
 *     the mirror among them
 *   an enrolment moved `updatedAt`, or left it        that it does so
 */
import { z } from 'zod';
import type { Subscription } from '../platform/request-schemas.ts';

/** The form in which the facts are stored. */
export const platformFacts = z.object({
  /** Whether a contact names every channel, with a default where it has no subscription. */
  namesAll: z.boolean().optional(),
  /** The subscription that a contact shows, by channel, where nobody ever enrolled it. */
  defaults: z.record(z.string(), z.enum(['opt_in', 'opt_out'])).default({}),
  /** Whether an acknowledged enrolment changes the `updatedAt` of the contact. */
  enrolmentMoves: z.boolean().optional(),
});
export type PlatformFacts = z.infer<typeof platformFacts>;

/**
 * The parts that the first contact of a page names, and whether other contacts of it name others.
 */
export interface NamedParts {
  names: readonly string[];
  differ: boolean;
}

/** One observation of the platform that says something about the facts. */
export type Evidence =
  /**
   * `others`: the subscriptions that the answer shows in channels that the creation did not name.
   */
  | { of: 'creation'; others: Readonly<Record<string, Subscription>> }
  /** `names`: whether the contacts of the listing name the same channels. */
  | { of: 'listing'; names: 'differ' | 'agree' }
  /** `moved`: whether `updatedAt` changed with it. */
  | { of: 'enrolment'; moved: boolean };

/** Returns the facts as they are after one more observation, by the table above. */
export function withEvidence(facts: PlatformFacts, evidence: Evidence): PlatformFacts {
  if (evidence.of === 'enrolment') return { ...facts, enrolmentMoves: evidence.moved };
  if (evidence.of === 'listing') {
    if (evidence.names === 'differ') return { ...facts, namesAll: false, defaults: {} };
    return facts.namesAll === false ? { ...facts, namesAll: undefined } : facts;
  }
  const { others } = evidence;
  const namesAll = Object.keys(others).length > 0;
  if (!namesAll) return { ...facts, namesAll, defaults: {} };
  const outs = Object.entries(facts.defaults).filter(([, is]) => is === 'opt_out');
  return { ...facts, namesAll, defaults: { ...others, ...Object.fromEntries(outs) } };
}

/** The pages of a whole listing, how many records they hold, and the parts of the mirror. */
interface Listed {
  pages: readonly NamedParts[];
  count: number;
  parts: readonly string[];
}

/** Returns the evidence that the pages of a whole listing give; undefined: none. */
export function evidenceOf({ pages, count, parts }: Listed): Evidence | undefined {
  if (pages.some(({ differ }) => differ)) return { of: 'listing', names: 'differ' };
  const [first, ...others] = pages;
  if (!first || count < 2 || first.names.length < 2) return undefined;
  const isAlike = others.every(({ names }) => isSame(names, first.names));
  const isAll = parts.every((name) => first.names.includes(name));
  return isAlike && isAll ? { of: 'listing', names: 'agree' } : undefined;
}

/** Returns whether two lists hold the same names, in any order. */
export function isSame(one: readonly string[], other: readonly string[]): boolean {
  const known = new Set(one);
  return new Set(other).size === known.size && other.every((name) => known.has(name));
}

/** Returns whether an opt-out on this channel may be its default, by the facts known so far. */
export function mayBeDefault({ namesAll, defaults }: PlatformFacts, channel: string): boolean {
  return namesAll !== false && defaults[channel] !== 'opt_in';
}
