/**
 * Checks people and templates. A source is read completely, by the steps of a run, so that its
 * counts are those of a plan; the records are staged in temporary tables beside the snapshot, which
 * is only read.
 */
import { cell } from '../../compose/output/text-style.ts';
import type { Shell } from '../../compose/process-shell.ts';
import { createProgress, outletsOf } from '../../compose/run-progress.ts';
import type { Config } from '../../config/config.ts';
import { Interrupted, Invalid, isExpected } from '../../domain/errors.ts';
import { isNamedLikeOptOut } from '../../domain/opt-out-names.ts';
import type { DesiredRow, RecordTypeName } from '../../domain/record.ts';
import { sayUnknown, isDecisiveOption } from '../../domain/unknown-words.ts';
import { decideUnmanaged, sayUnmanaged, type UnmanagedAs } from '../../domain/unmanaged-people.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import type { MirrorContacts, MirrorTemplates } from '../../engine/context/mirror-context.ts';
import { factsIn } from '../../engine/context/platform-knowledge.ts';
import { readSource, sayMissing, type SourceRead } from '../../engine/read/source-read.ts';
import { readTemplates } from '../../engine/templates/mirror-templates.ts';
import { systemClock } from '../../http/system-clock.ts';
import type { Domain } from '../../platform/answer-schemas.ts';
import type { Platform } from '../../platform/platform.ts';
import { unmanagedAs } from '../../records/contact/consent/facts.ts';
import type { Page } from '../../records/contact/contacts.ts';
import { mappedColumns } from '../../records/contact/observe/column-meanings.ts';
import { decodeContact } from '../../records/contact/observe/contact-state.ts';
import { shownChannels } from '../../records/contact/observe/observed-contact.ts';
import { strictest } from '../../records/contact/observe/consent-time.ts';
import { undeclaredIn } from '../../records/template/template-state.ts';
import type { Certificate } from '../../sources/source.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { isTextOfEach, saysOptOut } from '../init/column-words.ts';
import { countColumns } from '../init/sample.ts';
import { countMappedColumns, keepPeople } from './mapped-columns.ts';
import { type Finding, type Found, look, note } from './surroundings.ts';

interface Surroundings {
  config: Config;
  /** The snapshot; an empty one if none exists yet. */
  snapshot: Snapshot;
  shell: Shell;
  asTheyAre: boolean;
}

const pageSize = 100;

/** Also says who is not managed. `source` is undefined if it could not be read. */
export async function checkContacts(contacts: MirrorContacts, around: Surroundings) {
  const { config, snapshot, shell } = around;
  let source: SourceCheck | undefined;
  let goneCount = 0;
  const read = await look('source of contacts', async () => {
    const each = (row: DesiredRow): void => {
      if (!row.invalid && row.presence !== 'present') goneCount += 1;
    };
    source = await checkSource(contacts, around, each);
    return source.found;
  });
  const findings = [read, ...(source ? checkValues(source, around) : [])];
  let channels: Found | undefined;
  let unmanaged: Awaited<ReturnType<typeof findUnmanaged>> | undefined;
  const answer = await look("platform's contacts", async () => {
    const page = await contacts.list({ page: 1, limit: pageSize }, shell.stop);
    const named = new Set([...(page.parts?.names ?? []), ...page.rows.flatMap(shownChannels)]);
    const missing = contacts.channels.filter((name) => !named.has(name));
    if (missing.length > 0) channels = judgeMissing(missing, page, snapshot);
    if (goneCount > 0 && source)
      unmanaged = await findUnmanaged(contacts, snapshot, page, shell.stop);
    return answersWith(config, page.total);
  });
  findings.push(answer);
  if (channels) findings.push({ what: 'channels', ...channels });
  findings.push(...(unmanaged?.findings ?? []));
  return { findings, source, unmanaged: unmanaged?.counts ?? null };
}

function answersWith(config: Config, total: number): Found {
  return { level: 'ok', found: `${config.platform.url} answers and knows ${withCommas(total)}` };
}

/** Checks the files of the templates, their senders, and their side of the platform. */
export async function checkTemplates(
  templates: MirrorTemplates,
  { config, snapshot, shell }: Surroundings,
) {
  let counts: SourceCheck['counts'] | undefined;
  /** Sender domains, with the number of templates that use each. */
  const senders = new Map<string, number>();
  /** Templates that use variables and declare none, which a run therefore does not check. */
  const loose: string[] = [];
  const read = await look('source of templates', async () => {
    const reading = { snapshot, clock: systemClock, stop: shell.stop, progress: () => undefined };
    const { certificate, rows, findings } = await readTemplates(reading, templates);
    for (const { id, value, invalid } of rows) {
      if (invalid) continue;
      // The sender may have the form `Name <address>`.
      const [, domain] = /@([^@\s<>]+)>?\s*$/.exec(value.fromEmail ?? '') ?? [];
      const sender = domain?.toLowerCase();
      if (sender !== undefined) senders.set(sender, (senders.get(sender) ?? 0) + 1);
      const variables = value.variables ? [] : undeclaredIn(value);
      const names = variables.slice(0, mostShown).map((name) => `{{${cell(name)}}}`);
      const more = variables.length > mostShown ? ' and more' : '';
      if (names.length > 0) loose.push(`${cell(id)} (${names.join(', ')}${more})`);
    }
    const { valid: desired, wanted, skipped, invalid, missing } = findings.sizes;
    const duplicates = countDuplicates(snapshot, 'template');
    const records = rows.length;
    counts = { records, desired, wanted, skipped, invalid, missing, ...duplicates };
    return judgeCounts('template', snapshot, certificate, counts);
  });
  const answer = await look("platform's templates", async () => {
    const { total } = await templates.list({ page: 1, limit: 1 }, shell.stop);
    return answersWith(config, total);
  });
  const use = loose.length === 1 ? 'uses variables and declares' : 'use variables and declare';
  const found = `${counted(loose.length, 'template')} ${use} none: ${listSome(loose)}`;
  const fix = 'declare them in variables, so that a misspelt one is found before it is sent';
  const undeclared = loose.length > 0 ? [note('variables', found, fix)] : [];
  return { findings: [read, ...undeclared, answer], counts, senders };
}

/** UTF-8 that was read as windows-1252: Ã¤ for ä, â€“ for –. */
const garbledText = /Ã[\u00a0-\u00bf\u0178\u0152-\u0161\u017d\u017e\u2013-\u203a]|â€/;

export type SourceCheck = Awaited<ReturnType<typeof checkSource>>;

async function checkSource(
  contacts: MirrorContacts,
  { config, snapshot, shell, asTheyAre }: Surroundings,
  each: (row: DesiredRow) => void,
) {
  const columns = config.contacts ? mappedColumns(config.contacts, systemClock.now) : [];
  const { source } = contacts;
  const counter = countMappedColumns(columns);
  const people = keepPeople(columns);
  const unused = findUnusedOptOuts(contacts.fields);
  let [records, garbled] = [0, 0];
  let sample: DesiredRow | undefined;
  const note = (value: Record<string, unknown>, row: DesiredRow): void => {
    const values = counter.add(value);
    const texts = Object.values(value);
    if (texts.some((one) => typeof one === 'string' && garbledText.test(one))) garbled += 1;
    if (row.id !== '') sample ??= row;
    each(row);
    unused.add(value);
    // What these become shows only when the whole column was read.
    if (!row.asDates) people.add(row, values);
  };
  const watched: MirrorContacts = {
    ...contacts,
    desire(value, where) {
      const row = contacts.desire(value, where);
      note(value, row);
      return row;
    },
    source: {
      ...source,
      async *read(request) {
        const reading = source.read(request);
        let step = await reading.next();
        for (; !step.done; step = await reading.next()) {
          records += step.value.length;
          yield step.value;
        }
        return step.value;
      },
    },
  };
  const limits = { clock: systemClock, limits: () => ({}), reserve: 0 };
  const { progress, close } = createProgress(outletsOf(shell), limits);
  const run = { snapshot, clock: systemClock, stop: shell.stop, progress };
  const read = await readSource(run, watched).finally(close);
  const { valid: desired, wanted, skipped, invalid, missing, unknown, dateColumns } = read.sizes;
  const duplicates = countDuplicates(snapshot, 'contact');
  /** As a plan has them; `missing` are recorded people whom this reading is the first to lack. */
  const counts = { records, desired, wanted, skipped, invalid, missing, ...duplicates };
  return {
    columns: counter.document(dateColumns, asTheyAre),
    people,
    /** The number of records with a text that was decoded as another encoding. */
    garbled,
    unusedOptOuts: unused.names(),
    unknown,
    counts,
    found: await judge(contacts, read, counts, { snapshot, shell, sample }),
  };
}

function countDuplicates({ duplicates }: Snapshot, kind: RecordTypeName) {
  const { ids, sharedIds, keys } = duplicates.count({ kind });
  return { duplicateIds: ids, sharedIds, duplicateKeys: keys };
}

/** Judges a reading. `sample` is a record with an id, which is read alone. */
async function judge(
  { source, fields }: MirrorContacts,
  read: SourceRead,
  counts: { records: number; invalid: number; skipped: number },
  on: { snapshot: Snapshot; shell: Shell; sample: DesiredRow | undefined },
): Promise<Found> {
  const judged = judgeCounts('contact', on.snapshot, read, counts);
  if (!read.complete) return judged;
  const { skipped } = counts;
  const without = skipped > 0 ? `, ${withCommas(skipped)} without an address` : '';
  let single = '';
  if (on.sample && source.one) {
    // If a listed record were not found by its id, people would be mistaken for removed.
    if (!(await source.one(on.sample.id, { fields, signal: on.shell.stop }))) {
      throw new Invalid('a record of the list is not found by its id', {
        fix: 'correct one of the source',
      });
    }
    single = ', and one of them was read by its id';
  }
  return { ...judged, found: `${judged.found}${without}${single}` };
}

/** Judges a reading by whether it is complete, and by how many records are invalid. */
function judgeCounts(
  kind: RecordTypeName,
  { staging }: Snapshot,
  read: Certificate,
  { records, invalid }: { records: number; invalid: number },
): Found {
  if (!read.complete) return { level: 'fail', found: read.why, fix: read.fix };
  const [first] = staging.invalid(kind, 0, 1);
  const example = first ? `, the first at ${first.place}: ${first.invalid?.reason}` : '';
  const found = `${counted(records, 'record')}, ${withCommas(invalid)} of them invalid${example}`;
  // A single record proves nothing about a column.
  if (invalid < 2 || invalid * 2 <= records) return { level: 'ok', found };
  const fix = 'correct the columns and words of the configuration: see below what they hold';
  return { level: 'fail', found: `most are invalid: ${found}`, fix };
}

const bounds = { mostColumns: 10_000, mostValues: 100, longest: 200 };

/** `used` are the fields that the configuration names. */
export function findUnusedOptOuts(used: readonly string[]) {
  const columns = countColumns(bounds);
  let records = 0;
  // A condition may look into the elements of a list.
  const isUsed = (path: string): boolean =>
    used.some((name) => path === name || path.startsWith(`${name}[`));
  return {
    add(record: Record<string, unknown>): void {
      records += 1;
      columns.add(record);
    },
    names: () =>
      columns.all().flatMap(({ name, values, others }) => {
        const all = others > 0 ? [...values, { text: '\0others', records: others }] : values;
        const isNamed = isNamedLikeOptOut(name) && !isTextOfEach({ values: all }, records);
        return !isUsed(name) && (isNamed || values.some(saysOptOut)) ? [name] : [];
      }),
  };
}

const mostShown = 5;

function listSome(texts: readonly string[]): string {
  const more = texts.length - mostShown;
  return `${texts.slice(0, mostShown).join(', ')}${more > 0 ? ` and ${withCommas(more)} more` : ''}`;
}

function checkValues(source: SourceCheck, { config, snapshot, asTheyAre }: Surroundings) {
  const findings = source.unknown.map((words): Finding => {
    const { option: what, fix } = words;
    // There an unknown word may mean deleted or opted out.
    const level = isDecisiveOption(what) ? 'fail' : 'note';
    return { what, level, found: sayUnknown(words, { asTheyAre }), fix };
  });
  for (const { reason, fix } of sayMissing(snapshot, source.counts.missing)) {
    findings.push(note('people who are missing', reason, fix));
  }
  const { garbled } = source;
  const from = config.contacts?.source;
  if (garbled > 0 && from && 'encoding' in from && from.encoding === 'windows-1252') {
    const hold = garbled === 1 ? 'holds' : 'hold';
    const reason = `${counted(garbled, 'record')} ${hold} text such as "Ã¤" in place of "ä", as a UTF-8 file has when it is read as windows-1252`;
    findings.push(note('encoding', reason, 'set encoding: utf-8 in the source'));
  }
  const unused = source.unusedOptOuts.map((name) => JSON.stringify(cell(name)));
  if (unused.length > 0) {
    const [look, them] =
      unused.length === 1 ? ['looks like an opt-out', 'it'] : ['look like opt-outs', 'them'];
    const reason = `${listSome(unused)} ${look}, and the configuration does not use ${them}: who opted out only there is opted in`;
    const fix = 'if it says who must not be mailed, name it in contacts.unsubscribed';
    findings.push(note('contacts.unsubscribed', reason, fix));
  }
  return findings;
}

/** A platform lacks what none of its contacts names, unless each names only its own channels. */
function judgeMissing(names: string[], { rows, parts }: Page, snapshot: Snapshot): Found {
  const { namesAll } = factsIn(snapshot);
  const listed = counted(rows.length, 'contact');
  const them = names.join(', ');
  if (parts === undefined || parts.names.length === 0) {
    const why = rows.length === 0 ? 'it has no contacts yet' : 'its contacts name none';
    const found = `whether the platform has ${them} is not known, because ${why}: the first enrolments show it`;
    return { level: 'note', found };
  }
  const isAlike = !parts.differ && rows.length > 1 && parts.names.length > 1;
  if (namesAll === true || (namesAll === undefined && isAlike)) {
    const others = parts.names.join(', ');
    const name = rows.length === 1 ? 'names' : 'name';
    const fix = 'correct the ids in contacts.channels, or make the channels on the platform';
    const found = `the platform has no ${them}; ${listed} there ${name} ${others}`;
    return { level: 'fail', found, fix };
  }
  const found = `none of ${listed} names ${them}, so it is not known whether the platform has it`;
  return { level: 'note', found, fix: 'compare the ids on the platform' };
}

/** A plan compares all. */
const mostCompared = 2_000;
const afterRun = `no run touches them; after the first, ${decideUnmanaged}`;

/**
 * Counts people who are gone from the CRM and subscribed with a contact that is not the mirror's,
 * among the platform's newest contacts. `first` is the first page of the listing.
 */
async function findUnmanaged(
  contacts: MirrorContacts,
  { staging, recorded, unmanaged }: Snapshot,
  first: Page,
  signal: AbortSignal,
) {
  const found = new Map<string, UnmanagedAs>();
  const { channels } = contacts;
  let compared = 0;
  let page = first;
  for (let number = 1; page.rows.length > 0; number += 1) {
    for (const row of page.rows) {
      const desired = staging
        .desired('contact', row.alias)
        .map((one) => decodeContact.desired(one));
      if (desired.length === 0) continue;
      const known = {
        desired,
        contacts: [row.value],
        recorded: recorded.get('contact', row.alias),
      };
      const wishes = strictest(desired, channels);
      const acknowledged = unmanaged.decided('contact', row.alias, 'acknowledged');
      const as = channels
        .filter((channel) => wishes.get(channel) === 'gone' && !acknowledged.includes(channel))
        .map((channel) => unmanagedAs(known, channel))
        .find((one) => one !== undefined);
      if (as) found.set(row.alias, as);
    }
    compared += page.rows.length;
    if (compared >= Math.min(first.total, mostCompared)) break;
    page = await contacts.list({ page: number + 1, limit: pageSize }, signal);
  }
  const people = { deleted: 0, outOfScope: 0 };
  for (const as of found.values()) people[as] += 1;
  const isAll = compared >= first.total;
  const some = `of ${withCommas(first.total)} contacts, only the newest ${withCommas(compared)} were compared`;
  const what = 'people not managed';
  const fix = isAll ? afterRun : `${afterRun}; ${some}: \`crm-mirror plan\` compares all`;
  const findings = sayUnmanaged(people).map((reason) => note(what, reason, fix));
  if (!isAll && findings.length === 0) {
    findings.push(note(what, some, '`crm-mirror plan` compares all'));
  }
  const counts = { ...people, compared, contacts: first.total };
  return { counts, findings };
}

/** No finding about a sender domain is a failure, because none stops a mirror. */
export async function lookAtSenders(
  senders: ReadonlyMap<string, number>,
  { domains }: Platform,
  signal: AbortSignal,
): Promise<Finding[]> {
  if (senders.size === 0) return [];
  let known: readonly Domain[];
  try {
    known = await Array.fromAsync(domains.all({}, { signal }));
  } catch (error) {
    if (!isExpected(error) || error instanceof Interrupted) throw error;
    const found = `the platform's domains cannot be read: ${error.message}`;
    return [{ what: 'sender domains', level: 'note', found }];
  }
  return [...senders]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, templates]): Finding => {
      const domain = known.findLast((one) => one.domain.toLowerCase() === name);
      const [isWell, found, fix] = judgeDomain(name, domain);
      const used = `sends ${counted(templates, 'template')}; ${found}`;
      return { what: `sender domain ${name}`, level: isWell ? 'ok' : 'note', found: used, fix };
    });
}

function judgeDomain(
  name: string,
  domain: Domain | undefined,
): [isWell: boolean, found: string, fix?: string] {
  if (!domain)
    return [false, 'the platform does not know it', `crm-mirror platform domains create ${name}`];
  const { status, isSendingEmailEnabled, verificationFailedReason: why } = domain;
  if (isSendingEmailEnabled === false)
    return [false, 'its sending is switched off', 'switch it on on the platform'];
  if (status === 'active') return [true, 'verified (active)'];
  if (status === 'verifying')
    return [false, 'not verified yet: the platform is looking at its DNS records'];
  const reason = why ? ` (${cell(why)})` : '';
  const then = `make its DNS records, then crm-mirror platform domains verify ${name}`;
  return [false, `not verified: ${cell(status)}${reason}`, then];
}
