/**
 * Names the reasons why a run compares everything with the platform (mode `full`), or why a fast
 * run reads the whole source although the source can report what has changed.
 */

/** The words of each reason, by its code. The codes stay the same. */
const words = {
  // Why a run compares everything.
  asked: 'it was asked for with --full',
  usual: 'a run compares everything unless --fast is given',
  schedule: 'the schedule has a full run',
  backfill: 'backfill compares everything',
  'first-load': 'no full run has ended well yet, so nothing is known of the platform',
  'plan-file': 'the plan that is applied is one of a full run',
  'snapshot-restored': 'the snapshot was restored from a backup, and the platform not listed since',
  'snapshot-lost': 'the snapshot was damaged or lost, and a new one has begun',
  // Why a fast run reads the whole source.
  'no-cursor':
    'the last run left no place to go on from: it left work, was killed, or was the first',
  'person-open':
    'something was decided or left open for one person, who may not be among the changes',
  'mapping-changed': 'the configuration reads the CRM in another way than before',
  'run-died': 'an earlier run ended before its work was done',
  'cursor-lost': 'the source cannot tell any more what has changed since the last run',
  'changes-many': 'too many records have changed to read them one by one',
  'people-many': 'people with unfinished work, or their other records, cannot be read one by one',
  sample: 'only some people are chosen, which a reading of the changes does not show',
} as const satisfies Record<string, string>;

/** The code of a reason. */
export type FullCode = keyof typeof words;

/** A reason as the JSON documents show it. */
export interface FullReason {
  code: string;
  reason: string;
}

/** Returns the reasons, each once. */
export function fullReasons(codes: readonly FullCode[]): FullReason[] {
  return [...new Set(codes)].map((code) => ({ code, reason: words[code] }));
}
