/**
 * Facts about a platform that were observed where its specification says nothing. The snapshot
 * stores them; an undefined fact is not known yet.
 *
 *   evidence                                          what is then known
 *   a creation shows only its own channel             contacts name only their own channels
 *   a creation shows other channels as well           they name all; these are the defaults, and an
 *                                                     opt-out overrides an opt_in observed before
 *   contacts on one page name different channels      contacts name only their own channels
 *   all contacts name the same channels, including    it is no longer certain that they name only
 *     those of the mirror                             their own channels
 *   an enrolment moved `updatedAt`, or did not        whether enrolments do so
 */
import type { Subscription } from '../platform/request-schemas.ts';

export interface PlatformFacts {
  /** Whether a contact names every channel, with a default where it has no subscription. */
  namesAll?: boolean | undefined;
  /** What a contact shows in a channel in which it was never enrolled, by channel. */
  defaults: Record<string, Subscription>;
  /** Whether an acknowledged enrolment changes the contact's `updatedAt`. */
  enrolmentMoves?: boolean | undefined;
}

/** The parts of the first contact on a page, and whether others name other parts. */
export interface NamedParts {
  names: readonly string[];
  differ: boolean;
}

/** One observation of the platform that is evidence for a fact. */
export type Evidence =
  /** `others`: the subscriptions in channels that the creation did not name. */
  | { of: 'creation'; others: Readonly<Record<string, Subscription>> }
  /** `names`: whether the contacts in the listing name the same channels. */
  | { of: 'listing'; names: 'differ' | 'agree' }
  /** `moved`: whether the enrolment changed `updatedAt`. */
  | { of: 'enrolment'; moved: boolean };

/** Returns the facts after one more observation, following the table above. */
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

interface Listed {
  pages: readonly NamedParts[];
  count: number;
  parts: readonly string[];
}

/** Returns the evidence in the pages of a complete listing, or undefined if there is none. */
export function evidenceOf({ pages, count, parts }: Listed): Evidence | undefined {
  if (pages.some(({ differ }) => differ)) return { of: 'listing', names: 'differ' };
  const [first, ...others] = pages;
  if (!first || count < 2 || first.names.length < 2) return undefined;
  const isAlike = others.every(({ names }) => isSame(names, first.names));
  const isAll = parts.every((name) => first.names.includes(name));
  return isAlike && isAll ? { of: 'listing', names: 'agree' } : undefined;
}

/** Returns whether two lists contain the same names, in any order. */
export function isSame(one: readonly string[], other: readonly string[]): boolean {
  const known = new Set(one);
  return new Set(other).size === known.size && other.every((name) => known.has(name));
}

/** Returns whether an opt-out from this channel may be its default, by the known facts. */
export function mayBeDefault({ namesAll, defaults }: PlatformFacts, channel: string): boolean {
  return namesAll !== false && defaults[channel] !== 'opt_in';
}
