/**
 * The engine with one of its rules broken, from outside: what a careless hand could make of it. A
 * simulation that finds none of them is worth nothing.
 */
import { byGuard } from '../../src/domain/guard-classes.ts';
import { type Sending, type SendOutcome, stale } from '../../src/records/change-outcome.ts';
import { acknowledge } from '../../src/records/contact/send/acknowledged-change.ts';
import { acknowledgeTemplate } from '../../src/records/template/templates.ts';
import type { Change } from '../../src/domain/change.ts';
import type { RecordedRow } from '../../src/domain/record.ts';
import type { Mirror } from '../../src/engine/context/mirror-context.ts';

type Breaks = (mirror: Mirror) => Mirror;

interface Broken {
  /** The rule that no longer holds. */
  rule: string;
  /** The first seed that found it when this was last measured. */
  foundBy: number;
  breaks: Breaks;
}

export const broken: readonly Broken[] = [
  {
    rule: 'only acknowledged changes are recorded',
    foundBy: 21,
    breaks: (mirror) => ofBoth(mirror, ({ send }) => ({ send: recordingFirst(send, mirror) })),
  },
  {
    rule: 'an unanswered change is looked up before it is sent again',
    foundBy: 11,
    breaks: (mirror) =>
      ofBoth(mirror, () => ({
        recover: () => Promise.resolve(stale([], 'surely it did not happen')),
      })),
  },
  {
    rule: 'one incomplete listing proves nothing',
    foundBy: 55,
    breaks: (mirror) =>
      ofBoth(mirror, ({ list }) => ({
        list: async (...asked) => ({ ...(await list(...asked)), total: 0 }),
      })),
  },
  {
    rule: 'a 409 is followed by a look',
    foundBy: 22,
    breaks: (mirror) =>
      ofBoth(mirror, ({ send }) => ({
        async send(change, ...passage) {
          const outcome = await send(change, ...passage);
          const refused = outcome.is === 'rejected' && outcome.status === 409;
          if (!refused) return outcome;
          return { is: 'acked', id: change.target, observed: undefined, found: false };
        },
      })),
  },
  {
    rule: 'people known by id are enrolled by id',
    foundBy: 5,
    breaks: (mirror) =>
      ofBoth(mirror, ({ send }) => ({
        send: (change, ...passage) =>
          send(change.op === 'opt_in' ? { ...change, target: undefined } : change, ...passage),
      })),
  },
  {
    rule: 'a run begins with the journal',
    foundBy: 5,
    breaks(mirror) {
      const { journal } = mirror.snapshot;
      const forgetful = { ...journal, open: () => [], doubt: () => 0 };
      return { ...mirror, snapshot: { ...mirror.snapshot, journal: forgetful } };
    },
  },
  {
    rule: 'one reading without a person does not prove absence',
    foundBy: 1,
    breaks: (mirror) =>
      withAbsences(mirror, {
        get: () => ({ readings: 2, firstAt: 0, lastAt: 1e15, ageMs: 1e15, waitedMs: 1e15 }),
      }),
  },
  {
    rule: 'unsubscribed people in the do-not-contact list stay out',
    foundBy: 8,
    breaks: (mirror) => ({
      ...mirror,
      doNotContact: { ...mirror.doNotContact, concerning: () => [] },
    }),
  },
  {
    rule: 'a default, or the effect of an unanswered request, is not the person’s opt-out',
    foundBy: 5,
    breaks: (mirror) =>
      ofContacts(mirror, ({ optOuts }) => {
        const recorded: typeof optOuts.recorded = (row, facts) =>
          optOuts
            .recorded(row, facts)
            .map((out) => (out.cause === 'doubtful' ? { ...out, cause: 'opt_out' } : out));
        return { optOuts: { ...optOuts, recorded } };
      }),
  },
  {
    rule: 'guards hold changes of too many people',
    foundBy: 1,
    breaks: (mirror) => {
      const none = { percent: 100, floor: 1000 };
      return { ...mirror, guards: byGuard(() => none) };
    },
  },
  {
    rule: 'what the CRM stated of people without a contact is remembered',
    foundBy: 265,
    breaks: (mirror) => {
      const stated = { ...mirror.snapshot.stated, optOutsOf: () => [] };
      return { ...mirror, snapshot: { ...mirror.snapshot, stated } };
    },
  },
  {
    rule: 'answers that change places are held',
    foundBy: 392,
    breaks: (mirror) => {
      const shaping = { ...mirror.snapshot.shaping, turnedOut: () => [] };
      return { ...mirror, snapshot: { ...mirror.snapshot, shaping } };
    },
  },
  {
    rule: 'an approval releases what it showed, and no more of the class',
    foundBy: 3,
    breaks: (mirror) =>
      withGuarding(mirror, ({ approve, exempt, expire }) => ({
        approve: (guarded) =>
          approve(guarded) +
          exempt(guarded) +
          expire({ ...guarded, by: Number.MAX_SAFE_INTEGER, aheadMs: 0 }),
      })),
  },
  {
    rule: 'held changes stay held',
    foundBy: 24,
    breaks: (mirror) => withGuarding(mirror, () => ({ holdStanding: () => 0 })),
  },
  {
    rule: 'approved changes pass once',
    foundBy: 87,
    breaks: (mirror) =>
      withHolds(mirror, ({ decide }) => ({
        // Nothing was ever sent after that.
        decide: (decision, holds) =>
          decide({ ...decision, number: Number.MAX_SAFE_INTEGER }, holds),
        endDone: () => undefined,
      })),
  },
  {
    rule: 'forgotten people are not brought back',
    foundBy: 20,
    breaks: ({ doNotContact, ...mirror }) => ({
      ...mirror,
      doNotContact: {
        ...doNotContact,
        concerning: (who) =>
          doNotContact.concerning(who).filter(({ cause }) => cause !== 'erasure'),
      },
    }),
  },
  {
    rule: 'the audit log has every write',
    foundBy: 1,
    breaks: (mirror) =>
      withLog(mirror, ({ append }) => {
        let forgets = true;
        return {
          append(entries, reached) {
            const isWrite = entries.some(({ entry }) => entry.type === 'write');
            append(forgets && isWrite ? [] : entries, reached);
            forgets &&= !isWrite;
          },
        };
      }),
  },
  {
    rule: 'the audit log has each write once',
    foundBy: 3,
    breaks: (mirror) =>
      // Only an answered delete, and few runs have one, so that the check has to look for them.
      withLog(mirror, ({ append }) => ({
        append(entries, reached) {
          const again = entries.filter(
            ({ entry }) =>
              entry.type === 'write' && entry.op === 'delete' && entry.outcome === 'acked',
          );
          append([...entries, ...again.slice(0, 1)], reached);
        },
      })),
  },
];

/** The rules of canaries, each with the first seed of their stories that found it. */
export const brokenCanaries: readonly Broken[] = [
  {
    rule: 'many changes of a new mapping begin with a slice',
    foundBy: 2,
    breaks: (mirror) => ({ ...mirror, canary: undefined }),
  },
  {
    rule: 'everybody else waits when a slice is changed',
    foundBy: 4,
    breaks: (mirror) => withGuarding(mirror, () => ({ deferSome: () => 0 })),
  },
  {
    rule: 'the rest goes on after the wait',
    foundBy: 3,
    breaks: (mirror) => withCanary(mirror, { waitMs: 0 }),
  },
  {
    rule: 'newcomers wait, too',
    foundBy: 38,
    breaks: (mirror) =>
      withGuarding(mirror, ({ canary, ranges }) => ({
        canary: {
          ...canary,
          // Whoever is planned counts as changed, if the hash is in the slice.
          sent: ({ guard, run }) => [
            ...canary.sent({ guard, run }),
            ...[...ranges({ guard })]
              .flatMap((range) => canary.keys({ ...range, guard }))
              .map((key) => ({ ...made, key })),
          ],
        },
      })),
  },
  {
    rule: 'a slice out of bounds lets nobody follow',
    foundBy: 122,
    breaks: (mirror) =>
      withCanary(mirror, { bounds: { unsubscribed: 100, refused: 100, drift: 100 } }),
  },
];
const made = { op: 'opt_in', part: '', target: null, state: 'acked' } as const;

function withCanary(
  { canary, ...mirror }: Mirror,
  changed: Partial<NonNullable<Mirror['canary']>>,
): Mirror {
  return { ...mirror, canary: canary && { ...canary, ...changed } };
}

type Guarding = Mirror['snapshot']['guarded'];

function withGuarding(mirror: Mirror, changes: (guarding: Guarding) => Partial<Guarding>): Mirror {
  const { guarded: own } = mirror.snapshot;
  return { ...mirror, snapshot: { ...mirror.snapshot, guarded: { ...own, ...changes(own) } } };
}

type Holds = Mirror['snapshot']['holds'];

function withHolds(mirror: Mirror, changes: (holds: Holds) => Partial<Holds>): Mirror {
  const { holds: own } = mirror.snapshot;
  return { ...mirror, snapshot: { ...mirror.snapshot, holds: { ...own, ...changes(own) } } };
}

function withAbsences(mirror: Mirror, changed: Partial<Mirror['snapshot']['absences']>): Mirror {
  const absences = { ...mirror.snapshot.absences, ...changed };
  return { ...mirror, snapshot: { ...mirror.snapshot, absences } };
}

type Log = NonNullable<Mirror['audit']>['log'];

function withLog(mirror: Mirror, changes: (log: Log) => Partial<Log>): Mirror {
  const { audit } = mirror;
  if (!audit) return mirror;
  return { ...mirror, audit: { ...audit, log: { ...audit.log, ...changes(audit.log) } } };
}

type Contacts = NonNullable<Mirror['contacts']>;
/** What is broken alike of people and of templates. */
interface Common {
  list(page: { page: number; limit: number }, signal: AbortSignal): Promise<{ total: number }>;
  send(change: Change, passage: Sending, ...more: unknown[]): Promise<SendOutcome>;
  recover(...asked: never[]): Promise<SendOutcome>;
}

function ofContacts(mirror: Mirror, breaks: (contacts: Contacts) => Partial<Contacts>): Mirror {
  const { contacts } = mirror;
  return { ...mirror, contacts: contacts && { ...contacts, ...breaks(contacts) } };
}

function ofBoth(mirror: Mirror, breaks: (one: Common) => Partial<Common>): Mirror {
  const broken = <One extends object>(one: One): One =>
    Object.assign({ ...one }, breaks(one as never));
  const { contacts, templates } = mirror;
  return {
    ...mirror,
    contacts: contacts && broken(contacts),
    templates: templates && broken(templates),
  };
}

/** Writes down what it is about to send as if it were done. */
function recordingFirst(send: Common['send'], { snapshot, clock }: Mirror): Common['send'] {
  const { recorded } = snapshot;
  return (change, passage, ...more) => {
    const leaves = async (): Promise<void> => {
      await passage.leaves();
      const acked = { is: 'acked' as const, id: change.target, observed: undefined, found: false };
      const before = recorded.get(change.kind, change.key);
      const recordAs = change.kind === 'contact' ? acknowledge : acknowledgeTemplate;
      const row: RecordedRow | undefined = recordAs(before, change, { ...acked, at: clock.now() });
      if (row) recorded.put(row);
    };
    return send(change, { ...passage, leaves }, ...more);
  };
}
