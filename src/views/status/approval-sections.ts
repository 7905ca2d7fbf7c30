/**
 * Shows what awaits a decision, cause by cause, what was decided, and what a decision has done. The
 * ids of sections and lines are those to which a page adds forms.
 */
import { storedJson } from '../../domain/stored-json.ts';
import { type GuardClass, guardNames, guardRows, timedGuards } from '../../domain/guard-classes.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import type { Config } from '../../config/config.ts';
import type { BeforeAndNow, HeldChange, ChangeCount } from '../../store/holds/holds.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { approvalsInForce, isAnyLeft } from '../../engine/judge/plan-decisions.ts';
import { storedReasons } from '../../engine/judge/holds.ts';
import {
  countWords,
  nothingLeft,
  sayHeld,
  sayPending,
  signing,
} from '../../engine/report/guard-text.ts';
import { byWords, changeName, instant, range } from '../../compose/output/format-values.ts';
import { tickWords } from '../../config/schema/cron-pattern.ts';
import { successorsOf, whyGone } from '../lookup/missing-people.ts';
import type { Names } from '../lookup/person-names.ts';
import type { Seen } from '../lookup/seen-mirror.ts';
import { heldReason } from '../lookup/standing-problems.ts';
import { numbers, type Section, type Span, type Text, present } from '../sections.ts';
import { ago, heldWords } from './attention.ts';
import type { NextRuns } from './next-runs.ts';
import type { CurrentStatus } from './status-document.ts';

type Counts = Record<GuardClass, number>;

/** What `approve` or `reject` has done, as --json prints it. */
export interface DecisionDocument {
  mirror: string;
  /** The plan that is approved or rejected; null if nothing of it is. */
  approved?: string | null;
  rejected?: string | null;
  /** The hash of the part that was decided; null if it was the whole plan, or nothing. */
  part: string | null;
  /** The records with a change that was decided, and with one that still waits under the plan. */
  held: Counts;
  rest: Counts;
  by: string | null;
  reason: string | null;
  until: string | null;
  signatures?: { by: readonly string[]; need: number } | undefined;
  /** The people left out, if any, and the lines of the file that name nobody who waits. */
  leftOut?: { uncreated: number; approved: number; unknown: readonly number[] };
}

/** Returns whether what a process of this program has printed is the document of a decision. */
export function isDecision(value: unknown): value is DecisionDocument {
  return typeof value === 'object' && value !== null && 'held' in value && 'rest' in value;
}

/** What only a terminal shows: hashes, and commands. */
interface ForTerminal {
  plan: string;
  undoes?: string | undefined;
  /** What the next approver signs, and whether this one has not signed it before. */
  signed?: { next: string; isNew: boolean } | undefined;
  takeBack?: string;
  peopleFile?: string | undefined;
}

const mostNamed = 20;

/** Says what a decision has done. */
export function decisionLines(document: DecisionDocument, terminal?: ForTerminal): string[] {
  const { held, rest, part, until, signatures, leftOut, rejected } = document;
  const { plan, undoes, signed, takeBack, peopleFile } = terminal ?? {};
  const ending = terminal
    ? 'rejecting the hash in `crm-mirror status --json`'
    : '“Reject after all”';
  const isRejection = rejected !== undefined;
  if (!isAnyLeft(held)) return [nothingLeft(plan, isRejection ? 'reject' : 'approve')];
  const others = heldWords(rest);
  const { uncreated = 0, approved = 0, unknown = [] } = leftOut ?? {};
  const people = (n: number): string => counted(n, 'person', 'people');
  const lines = unknown.slice(0, mostNamed).join(', ');
  const more = unknown.length > mostNamed ? ` and ${unknown.length - mostNamed} more` : '';
  const leftLines = present(
    others !== '' &&
      `Still awaiting approval${plan === undefined ? '' : ` under the plan ${plan}`}: ${others}.`,
    uncreated > 0 && `${people(uncreated)} left out: approve the creation as well.`,
    approved > 0 &&
      `${people(approved)} left out, who are approved already: ${ending} ends that approval.`,
    unknown.length > 0 &&
      `${peopleFile}: nobody who waits has the address or id of line ${lines}${more}.`,
  );
  if (isRejection) {
    return [
      `Rejected: ${heldWords(held)}.`,
      `No run does it while the CRM asks for the same, until ${until} at most.`,
      ...(takeBack === undefined ? [] : [`To take it back: ${takeBack}`]),
      ...leftLines,
    ];
  }
  const words = heldWords(held, undoes);
  const partLine = terminal && part !== null ? [`This part has the hash ${part}.`] : [];
  if (signatures && signatures.by.length < signatures.need) {
    return [
      `Signed: ${words}.${signed?.isNew ? '' : ' This approver has signed it before.'}`,
      `${sayPending(signatures)}. Nothing is approved yet; each signature counts for seven days.`,
      `Another approver signs the same changes: \`crm-mirror ${signing(signed?.next ?? '')}\``,
      ...partLine,
      ...leftLines,
    ];
  }
  const later = guardNames.map((guard) =>
    held[guard] > 0 ? (guardRows[guard].words.doneLater ?? '') : '',
  );
  return [
    `Approved: ${words}${signatures ? ` (signed by ${signatures.by.join(', ')})` : ''}.`,
    undoes === undefined
      ? `The next runs do it${later.join('')}. ` +
        `The approval ends when a full run has ended well, or at ${until}.`
      : `Only \`crm-mirror undo ${undoes} --yes\` does it. The approval ends at ${until}.`,
    ...partLine,
    ...leftLines,
  ];
}

/** Of how many changes of a cause the page says what was before: more would take too long. */
const changesCompared = 5_000;
const approvalsShown = 10;

/** What awaits a decision, and was decided. */
export type ApprovalFacts = ReturnType<typeof readApprovals>;
/** A plan with changes that nobody has decided about, or that wait for a run. */
export type ShownPlan = ApprovalFacts['plans'][number];
/** What a guard withholds of it. */
export type WithheldPart = ShownPlan['causes'][number];

/** Reads what awaits a decision by plan and cause, and what was decided. */
export function readApprovals(
  snapshot: Snapshot,
  { config, now, names }: Seen,
  status: CurrentStatus,
) {
  const { holds, meta } = snapshot;
  const inForce = approvalsInForce(snapshot, { approvers: config.approvers, now });
  const ids = inForce.map(({ id }) => id);
  const approvals = new Map(inForce.map((one) => [one.id, one]));
  const asked = storedReasons(meta);
  const named = status.held.map(({ plan }) => plan);
  const rejected = new Map(
    holds.rejections().map(({ id }) => [id, holds.groups({ list: id, approvals: [] })]),
  );
  // A run that reads a part shows in its plan what an earlier plan shows, too.
  const isShownElsewhere = (plan: string, guard: GuardClass): boolean =>
    named.some(
      (other, at) =>
        other !== plan &&
        holds.covers(other, plan, guard) &&
        (at > named.indexOf(plan) || !holds.covers(plan, other, guard)),
    );
  const plans = status.held.map((held) => {
    const all = holds.groups({ list: held.plan, approvals: ids });
    const { ended } = holds.counts({ list: held.plan, approvals: ids });
    const causes = guardNames.flatMap((guard) => {
      const groups = all.filter((group) => group.guard === guard);
      if (groups.length === 0 || isShownElsewhere(held.plan, guard)) return [];
      const compared = holds.beforeAndNow(held.plan, ids, { guard, most: changesCompared });
      const isOpen = held.undecided[guard] > 0 && groups.some(({ approval }) => approval === null);
      const open = held.undecided[guard];
      const found = asked[guard] ?? {};
      // The figures that a run found are of all that it held.
      const isPart =
        ended[guard] > 0 ||
        groups.some(({ approval }) => approval !== null) ||
        [...rejected.values()].flat().some((group) => group.guard === guard);
      const { first = '' } = found;
      const then = `when a run held them, there were ${first}; some of them no longer wait`;
      // It is undefined if no run has said why the guard withholds them.
      const reason =
        found.asked ??
        (first === '' || held.undoes !== undefined
          ? heldReason(snapshot, guard)?.reason
          : sayHeld(guard, open, isPart ? then : first, { ops: groups.map(({ op }) => op) }));
      const kind = guardRows[guard].recordType;
      const examples = holds
        .examples({ list: held.plan, approvals: ids, guard })
        .map((key) => ({ record: { kind, key }, name: names({ kind, key }) }));
      return [{ guard, open, isOpen, isPart, reason, found, groups, compared, examples }];
    });
    return { held, causes };
  });
  const waiting = plans.flatMap(({ causes, held }) =>
    causes.flatMap(({ groups }) =>
      groups.flatMap((group) => {
        const by = group.approval === null ? undefined : approvals.get(group.approval);
        return by ? [{ ...group, undoes: held.undoes !== undefined, by }] : [];
      }),
    ),
  );
  return {
    plans,
    now,
    approvals,
    waiting,
    lately: holds.decidedLately(approvalsShown),
    rejected,
  };
}

/** Counts what is open of these causes: 12 people and 3 templates. */
export function openWords(causes: readonly WithheldPart[]): string {
  return (['contact', 'template'] as const)
    .flatMap((type) => {
      const mine = causes.filter(({ guard }) => guardRows[guard].recordType === type);
      const n = mine.reduce((sum, { open }) => sum + open, 0);
      return n === 0 ? [] : [countWords(type, n)];
    })
    .join(' and ');
}

/** Shows a cause: why the changes are withheld, how many of each sort, and what was before. */
export function causeSections(
  { held: { plan, optOutsUntil } }: ShownPlan,
  { guard, open, isPart, reason, found, groups, compared, examples }: WithheldPart,
  { approvals, now }: ApprovalFacts,
  { guards }: Config,
): Section[] {
  const { words, configKey, recordType } = guardRows[guard];
  const { percent, floor } = guards[configKey];
  const isStated = timedGuards.has(guard);
  const changes = groups.reduce((sum, { n }) => sum + n, 0);
  const { people = open, of = 0, most = 0, by = 'run' } = found;
  const isMeasured = of > 0 && found.asked === undefined && !isPart;
  const share = Math.round((100 * people) / Math.max(1, of));
  const whose = by === 'withdrawn' ? 'people whose opt-out the CRM had stated' : words.of;
  const limit =
    `The limit (\`guards.${configKey}\`) is the greater of ${countWords(recordType, floor)} ` +
    `and ${percent} % of the ${words.of}`;
  const causes: Readonly<Record<string, string>> = words.causes ?? {};
  const cause = `This is ${causes[by] ?? words.cause}.`;
  const why = reason === undefined ? '' : reason.replace(/(?<!\?)$/, '.');
  // Several rows of the store may read alike.
  const rows = new Map<string, Text[]>();
  const counts = new Map<string, number>();
  for (const one of compared) {
    const [before, now] = [beforeWords(one), nowWords(one)];
    const alike = [one.part, before, now].join('\n');
    const n = (counts.get(alike) ?? 0) + one.n;
    counts.set(alike, n);
    rows.set(alike, [one.part === '' ? '–' : { channel: one.part }, before, now, withCommas(n)]);
  }
  return [
    {
      title: `${words.heading} · ${countWords(recordType, open)}`,
      lines: present<Text>(
        `${why} ${cause}`.trim(),
        by !== 'withdrawn' && {
          tone: 'quiet',
          text: isMeasured || isPart ? `${limit}.` : `${limit}; this is ${withCommas(open)}.`,
        },
        isStated &&
          optOutsUntil !== null &&
          `From ${optOutsUntil} on (in ${range(Math.max(0, Date.parse(optOutsUntil) - now))}), ` +
            'those that the CRM still states are applied without approval.',
        isStated && unrejectable,
      ),
      ...(isMeasured && {
        measure: {
          text:
            `${withCommas(people)} of ${withCommas(of)} ${whose} (${share} %); ` +
            `the limit is ${withCommas(most)}`,
          n: people,
          of,
          most,
        },
      }),
      // What was before says the same of people about whom nobody has decided.
      ...((isPart || recordType === 'template') && {
        table: {
          columns: ['Change', 'Channel', numbers('Changes'), 'State'],
          rows: groups.map(({ op, part, n, approval }) => {
            const who = approval === null ? undefined : approvals.get(approval);
            const state = `approved${who ? byWords(who) : ''}, waits for the next run`;
            const channel = part === '' ? '–' : { channel: part };
            const is = approval === null ? undecided : state;
            return [changeName(op, false), channel, withCommas(n), is];
          }),
        },
      }),
    },
    ...(recordType === 'contact'
      ? [
          {
            title: 'Before and now',
            ...(changes > changesCompared && {
              aside: `of the first ${withCommas(changesCompared)} changes`,
            }),
            table: {
              columns: ['Channel', 'Before', 'Now in the CRM', numbers('Changes')],
              rows: [...rows.values()],
            },
          },
        ]
      : []),
    {
      lines: [
        [
          ...examples.flatMap((one, at): Span[] => [at === 0 ? 'For example ' : ', ', one]),
          examples.length === 0 ? '' : '. ',
          changes === open ? '' : `These are ${counted(changes, 'change')}: one in each channel. `,
          { page: `approvals/${plan}?guard=${guard}`, text: `All ${counted(changes, 'change')}` },
        ],
      ],
    },
  ];
}

function beforeWords({ withdraws, was, madeBy, fields }: BeforeAndNow): string {
  if (withdraws === 1) return `opted out in the CRM${byFields(fields)}`;
  if (was === null) return 'no contact';
  if (was === 'opt_in') return 'subscribed';
  if (was === 'opt_out')
    return madeBy === 'us' ? 'unsubscribed by us' : 'unsubscribed on the platform';
  return 'not subscribed';
}

function nowWords({ op, stated, fields, marked }: BeforeAndNow): string {
  if (op === 'opt_in') return 'opted in';
  if (marked === 1) return 'deleted there, or out of scope';
  return stated === 1 ? `opted out${byFields(fields)}` : 'missing, or with another address';
}

function byFields(fields: string | null): string {
  return fields === null ? '' : ` by \`${fields}\``;
}

/** What is said instead of a form that rejects. */
const unrejectable: Text = [
  'An opt-out that the CRM states cannot be rejected: correct it in the CRM, and until then ',
  { page: '', text: 'pause the mirror' },
  '.',
];

function whatOf({ guard, op, part, n }: ChangeCount): Span[] {
  const who = countWords(guardRows[guard].recordType, n);
  const to = { opt_in: ' to ', opt_out: ' of ' }[op] ?? ' in ';
  return [`${who}: ${changeName(op, false)}`, ...(part === '' ? [] : [to, { channel: part }])];
}

/** Shows what is approved and not yet sent, with the run that will send it. */
export function approvedSections(
  { waiting }: ApprovalFacts,
  { status, next: { due } }: { status: CurrentStatus; next: NextRuns },
  { policy }: Config,
): Section[] {
  if (waiting.length === 0) return [];
  const needsFull = waiting.some(({ guard }) => guard === 'delete');
  const deletes = policy.deletes === 'off' ? '' : ' and delete';
  const why = needsFull
    ? ` Only full runs opt out${deletes} people who are missing from the CRM.`
    : '';
  const next = due.find(({ run }) => run === 'full' || (run === 'fast' && !needsFull));
  const when = next
    ? `The next one that does it: ${tickWords(next.run)}, ${next.at}.${why}`
    : `Nothing is scheduled.${why}`;
  return [
    {
      title: 'Approved, waits for the next run',
      aside:
        'An approval ends once the changes are made, with the first full run that ends well, and ' +
        'after a week at the latest.',
      isList: true,
      lines: waiting.map(({ by, ...group }, at) => ({
        id: `approved ${at}`,
        text: [...whatOf(group), `: approved${byWords(by)}, ${agoWords(by.at, status)}`],
        notes: timedGuards.has(group.guard) ? [unrejectable] : [],
      })),
    },
    {
      id: 'run',
      lines: [
        status.paused
          ? ['This mirror is paused: ', { page: '', text: 'end the pause' }, '.']
          : when,
        ...(status.running ? ['A run is in progress.'] : []),
      ],
    },
  ];
}

function agoWords(atMs: number, { at: now }: CurrentStatus): string {
  return `${instant(atMs)} (${ago(instant(atMs), now)} ago)`;
}

/** Shows what is rejected, and what runs have done lately of what was approved. */
export function decidedSections(
  { rejected, lately }: ApprovalFacts,
  status: CurrentStatus,
): Section[] {
  return [
    {
      title: 'Rejected',
      aside:
        'No run makes these changes before the rejection ends. After that, they await a decision again.',
      isList: true,
      lines: status.rejections.map(({ part, until, by, reason, ...held }) => {
        const what = isAnyLeft(held) ? heldWords(held) : 'Nothing any more';
        return {
          id: `rejected ${part}`,
          text: `${what}: rejected${byWords({ by, reason })}, until ${until}.`,
          notes: (rejected.get(part) ?? []).map(whatOf),
        };
      }),
    },
    {
      title: 'Decided lately',
      isList: true,
      lines: lately.map((one): Text => {
        const { at, by, reason, run, done, n } = one;
        const link: Span[] =
          run === null ? [] : [' by ', { page: `runs/${run}`, text: `run ${run}` }];
        const when = `approved${byWords({ by, reason })}, ${agoWords(at, status)}`;
        return [...whatOf(one), `: ${when}; ${withCommas(done)} of ${withCommas(n)} done`, ...link];
      }),
    },
  ];
}

const undecided = 'awaits a decision';
const ids = storedJson<readonly string[]>('the ids of a held change');

/**
 * Returns a function that puts a change into words. An id of the CRM that is an address is hidden
 * from users who see hashes.
 */
export function tellChanges(snapshot: Snapshot, names: Names) {
  return ({ kind, key, op, part, guard, ids: text, isFurther, verdict, ...who }: HeldChange) => {
    const named = text === '' ? [] : ids.decode(text);
    // Who is missing from the CRM has no record in this reading of it.
    const found =
      named.length > 0 || kind === 'template' ? named : snapshot.recorded.originsOf(kind, key);
    const crmIds = found.map((id) => names({ kind, key: id }));
    const change = changeName(isFurther === 1 ? 'create' : op, false);
    const cause = guardRows[guard].words.heading;
    const records = crmIds.length === 0 ? '' : ` (record ${crmIds.join(', ')})`;
    let why = kind === 'template' ? cause : `the CRM says so${records}`;
    if (guard === 'delete') {
      const movedTo = successorsOf(snapshot, key).map((next) => names({ kind, key: next }));
      // Who is marked as deleted counts as absent, but is not missing.
      const absence = named.length === 0 && snapshot.absences.get(kind, key);
      why = whyGone({ absence }, movedTo);
    }
    const state =
      verdict === 'approved' ? `approved${byWords(who)}, waits for the next run` : undecided;
    return { kind, key, who: names({ kind, key }), change, part, cause, crmIds, why, state };
  };
}
