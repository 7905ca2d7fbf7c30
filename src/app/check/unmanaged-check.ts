/**
 * Counts people who are gone from the CRM and subscribed with a contact that is not the mirror's,
 * by comparing the staged reading with the platform's newest contacts.
 */
import { renderProblem } from '../../domain/errors.ts';
import {
  decideUnmanaged,
  sayUnmanaged,
  type UnmanagedAs,
  type UnmanagedPeople,
} from '../../domain/unmanaged-people.ts';
import { withCommas } from '../../domain/values/counted.ts';
import { unmanagedAs } from '../../records/contact/consent/facts.ts';
import { decodeContact } from '../../records/contact/observe/contact-state.ts';
import { strictest } from '../../records/contact/observe/strictest-consent.ts';
import type { Page, RecordType } from '../../records/record-type.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import type { Finding } from './finding.ts';
import { pageSize } from './platform-check.ts';

/** The number of contacts that are compared at most; a plan compares all. */
const mostCompared = 2_000;

/** What was found. */
export interface UnmanagedCheck {
  /** `compared` and `contacts`: how many contacts were compared, of how many. */
  counts: UnmanagedPeople & { compared: number; contacts: number };
  findings: Finding[];
}

/** The contacts to compare with the staged reading. */
interface ToCompare {
  type: RecordType;
  /** The snapshot with the staged reading. */
  snapshot: Snapshot;
  /** The first page of the listing. */
  first: Page;
  signal: AbortSignal;
}

/** Compares the newest contacts. Throws the errors of the requests. */
export async function findUnmanaged(of: ToCompare): Promise<UnmanagedCheck> {
  const { type, first, signal } = of;
  const found = new Map<string, UnmanagedAs>();
  let compared = 0;
  let page = first;
  for (let number = 1; page.rows.length > 0; number += 1) {
    for (const row of page.rows) {
      const as = unmanagedIn(of, row);
      if (as) found.set(row.alias, as);
    }
    compared += page.rows.length;
    if (compared >= Math.min(first.total, mostCompared)) break;
    page = await type.list({ page: number + 1, limit: pageSize }, signal);
  }
  const people = { deleted: 0, outOfScope: 0 };
  for (const as of found.values()) people[as] += 1;
  const isAll = compared >= first.total;
  const some = `of ${withCommas(first.total)} contacts, only the newest ${withCommas(compared)} were compared`;
  const told = sayUnmanaged(people);
  const more = isAll
    ? []
    : [renderProblem({ reason: some, fix: '`crm-mirror plan` compares all' })];
  const fix = isAll ? afterRun : `${afterRun}; ${some}: \`crm-mirror plan\` compares all`;
  const lines = told.length > 0 ? told.map((reason) => renderProblem({ reason, fix })) : more;
  return {
    counts: { ...people, compared, contacts: first.total },
    findings: lines.map((text) => ({
      what: 'people not managed',
      level: 'note',
      found: text,
      invalidInput: false,
    })),
  };
}

const afterRun = `no run touches them; after the first, ${decideUnmanaged}`;

/** Returns how the CRM names the person of a contact who counts; undefined for all others. */
function unmanagedIn(
  { type, snapshot: { staging, recorded: known, unmanaged } }: ToCompare,
  row: Page['rows'][number],
): UnmanagedAs | undefined {
  const desired = staging.desired('contact', row.alias).map((one) => decodeContact.desired(one));
  if (desired.length === 0) return undefined;
  const recorded = known.get('contact', row.alias);
  const contacts = [decodeContact.observed(row).value];
  const channels = type.capabilities.channels?.names ?? [];
  const wishes = strictest(desired, channels);
  const acknowledged = unmanaged.decided('contact', row.alias, 'acknowledged');
  return channels
    .filter((channel) => wishes.get(channel) === 'gone' && !acknowledged.includes(channel))
    .map((channel) => unmanagedAs({ desired, contacts, recorded }, channel))
    .find((one) => one !== undefined);
}
