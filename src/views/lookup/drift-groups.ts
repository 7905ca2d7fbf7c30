/**
 * Groups what differs on the platform and cannot, or may not, be mended by a run: by cause, with a
 * number and examples. Problems of the plan keep their words.
 */
import { renderProblem } from '../../domain/errors.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import type { ProblemCause } from '../../domain/problem-causes.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import type { Mirror } from '../../engine/context/mirror-context.ts';
import type { Summary } from '../../engine/report/run-summary.ts';
import type { Drifted } from '../../store/staging/observed-records.ts';
import { numbers, type Section } from '../sections.ts';
import type { Names } from './person-names.ts';

export interface DriftGroup {
  cause: string;
  kind: RecordTypeName | 'channel';
  count: number;
  reason: string;
  fix: string;
  /** People and templates by name, contacts that are not ours by id, channels by id. */
  examples: string[];
  /** What is said of single templates, such as the parts that were edited. */
  details?: { key: string; reason: string }[];
}

/** A channel that people have, and that the configuration does not name. */
export interface OtherChannel {
  id: string;
  name: string;
  count: number;
}

/** These have groups of their own, or are to be mended in the CRM. */
const elsewhere: ReadonlySet<ProblemCause> = new Set([
  'records-contradict',
  'several-contacts',
  'vanished',
  'renamed',
]);
/** Templates that cannot be compared or told apart. */
const unclear: ReadonlySet<ProblemCause> = new Set(['template-name-shared', 'template-too-deep']);

/** Returns the groups, the largest first. `most`: how many records of a group are named. */
export function driftGroups(drifted: {
  mirror: Mirror;
  summary: Summary;
  channels: readonly OtherChannel[];
  names: Names;
  most: number;
}): DriftGroup[] {
  const { mirror, summary, channels, names, most } = drifted;
  const { drift } = mirror.snapshot;
  const named = (kind: RecordTypeName, { count, records }: Drifted): Drifted => ({
    count,
    records: records.map((key) => names({ kind, key })),
  });
  const fromPlan = summary.groups
    .filter(
      (group) =>
        (group.class === 'conflict' || unclear.has(group.cause)) && !elsewhere.has(group.cause),
    )
    .map(({ cause, kind, count, reason, fix, samples }): DriftGroup => {
      const found = drift.withProblem(kind, cause, most);
      const keys = (found.length > 0 ? found : samples).map(({ key }) => key);
      const examples = keys.map((key) => names({ kind, key }));
      const group = { cause, kind, count, reason, fix, examples };
      const isSaid = kind === 'template' && found.some((one) => one.reason !== reason);
      return isSaid ? { ...group, details: found } : group;
    });
  const groupOf = (cause: keyof typeof words, { count, records }: Drifted): DriftGroup => {
    const { kind, reason, fix } = words[cause];
    return { cause, kind, count, reason, fix, examples: records };
  };
  const subscribed = channels
    .toSorted((a, b) => b.count - a.count)
    .slice(0, most)
    .map(({ id, name, count }) => {
      return `${name === '' ? id : `${id} (${name})`}: ${count} subscribed`;
    });
  const known = summary.certificate.platform === true;
  const groups = [
    ...fromPlan,
    groupOf('several-contacts', named('contact', drift.sharedAddresses(most))),
    groupOf('renamed', named('contact', drift.renamed(most))),
    groupOf('foreign-contact', drift.foreignContacts(most)),
    groupOf('foreign-template', drift.foreignTemplates(most)),
    ...(known ? [groupOf('vanished', named('contact', drift.vanished(most)))] : []),
    groupOf('other-channel', { count: channels.length, records: subscribed }),
  ];
  return groups.filter(({ count }) => count > 0).toSorted((a, b) => b.count - a.count);
}

const words = {
  'several-contacts': {
    kind: 'contact',
    reason: 'several contacts on the platform share one address, so nobody is opted in there',
    fix:
      'delete all but one of them on the platform: keep the one that unsubscribed or is blocked, because ' +
      'with it the platform would forget that',
  },
  renamed: {
    kind: 'contact',
    reason:
      'our contacts that have another address on the platform; here is the one that is recorded',
    fix:
      'give the person the same address in the CRM and on the platform; a contact that is deleted ' +
      'there takes its opt-outs with it',
  },
  'foreign-contact': {
    kind: 'contact',
    reason: 'contacts that neither this mirror nor the CRM knows; they are left alone',
    fix:
      'nothing, if they are meant to be there; otherwise add them to the CRM, or delete them, but ' +
      'none that has unsubscribed: the platform would forget that',
  },
  'foreign-template': {
    kind: 'template',
    reason: 'templates that are not of this mirror; they are left alone',
    fix: 'nothing, if they are meant to be there; to adopt one, add it to the source by its name',
  },
  vanished: {
    kind: 'contact',
    reason: 'our contacts that are gone from the platform',
    fix:
      'remove the people from the CRM; policy.missing: recreate subscribes all of them again, also ' +
      'those who had themselves deleted',
  },
  'other-channel': {
    kind: 'channel',
    reason: 'channels that people have on the platform, and that the configuration does not name',
    fix: 'add them to contacts.channels if the CRM decides about them',
  },
} as const;

/** Returns the groups: for each its count, its reason, what to do, and its examples. */
export function driftSection(mirror: string, groups: readonly DriftGroup[]): Section {
  const rows = groups.map((group) => {
    const { cause, kind, count, reason, fix, examples, details = [] } = group;
    const more = count > examples.length ? [`and ${withCommas(count - examples.length)} more`] : [];
    const named =
      details.length > 0
        ? [...details.map((one) => `${one.key}: ${one.reason}`), ...more]
        : [[examples.join(', '), ...more].join(' ')];
    return {
      cells: [withCommas(count), kind, `${renderProblem({ reason, fix })} [${cause}]`],
      notes: named.filter((line) => line !== ''),
    };
  });
  const columns = [numbers('Records'), 'Kind', 'What differs'];
  if (rows.length === 0) {
    return { none: `Nothing differs on the platform that ${mirror} does not mend.` };
  }
  const causes = counted(groups.length, 'cause');
  return {
    title: `On the platform of ${mirror}, ${causes} of differences that no run mends:`,
    table: { columns, rows, isBare: true },
  };
}
