/**
 * The steps of a run for templates. There are hundreds of them, so each step takes all at once, and
 * no other run is at the same template.
 *
 * Nobody gets the same test twice: which content was sent to whom is on disk before the test is
 * sent, and counts as sent after a crash in between.
 */
import type { Key } from '../../domain/record.ts';
import {
  decodeTemplate,
  type DesiredTemplateRow,
  desireTemplate,
  type ObservedTemplateRow,
  refuseSharedNames,
  type TemplateStates,
  unreadTemplate,
} from '../../records/template/template-state.ts';
import { acknowledgeTemplate, type TestClaims } from '../../records/template/templates.ts';
import type { Certificate } from '../../sources/source.ts';
import { everything } from '../../store/database/key-range.ts';
import { storedFact } from '../../store/database/meta-table.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import type { Applying, SendableRecords } from '../apply/apply-changes.ts';
import type { MirrorTemplates } from '../context/mirror-context.ts';
import type { RunContext } from '../context/run-context.ts';
import { type Findings, noFindings, type PlatformListing } from '../context/run-results.ts';
import type { RunTally } from '../context/run-tally.ts';
import { decideCandidates, stageDecision, undoneIn } from '../decide/decide-changes.ts';
import { endingIn, type ReadingRun, reasonOf, refuseEmpty } from '../read/source-read.ts';

const kind = 'template';
/** More than a mirror has. */
const all = 1_000_000;

/** Reads all files into staging. Throws Unavailable if there are none, and some are recorded. */
export async function readTemplates(
  run: ReadingRun,
  { source }: MirrorTemplates,
): Promise<{ certificate: Certificate; rows: DesiredTemplateRow[]; findings: Findings }> {
  const { staging, stage, absences } = run.snapshot;
  const read: DesiredTemplateRow[] = [];
  let certificate: Certificate | undefined;
  let share: number | undefined;
  const reading = source.read({
    fields: [],
    signal: run.stop,
    progress: (done) => void (share = done),
  });
  for await (const records of endingIn(reading, (last) => (certificate = last))) {
    for (const record of records)
      read.push(
        'value' in record ? desireTemplate(record.value, record.where) : unreadTemplate(record),
      );
    run.progress({ stage: 'reading', kind, done: read.length, of: undefined, share });
    if (run.stop.aborted) throw reasonOf(run.stop);
  }
  if (!certificate) throw new TypeError('a reading ended without a word on how');
  const rows = refuseSharedNames(read);
  refuseEmpty(run, kind, rows.length);
  const range = { kind, ...everything } as const;
  stage(() => {
    staging.addDesired(rows, 1);
    staging.sortKeyless(range);
    staging.sortRange(range);
  });
  staging.endSorting();
  const invalid = staging.countInvalid(kind);
  const missing = absences.countNew(range);
  const sizes = { ...noFindings.sizes, ...staging.countDesired(range), invalid, missing };
  const { complete: certified, reading: name } = certificate;
  return {
    certificate,
    rows,
    // A run reads the files once, and sends what they said then.
    findings: { ...noFindings, certified, whole: true, reading: name, sizes, still: () => true },
  };
}

/**
 * Lists the platform's templates into staging. The listing is complete if it has as many as its
 * first page stated; if it falls short, the list is read again with other page boundaries, and
 * merged. Throws the errors of the requests.
 */
export async function listTemplates(
  run: RunContext,
  templates: MirrorTemplates,
): Promise<PlatformListing> {
  const { staging, stage } = run.snapshot;
  const startedAt = run.clock.now();
  const knownEntries = run.doNotContact.newest();
  const found = new Map<string, ObservedTemplateRow>();
  let total: number | undefined;
  let organization: string | undefined;
  for (const limit of run.pageSizes) {
    for (let page = 1, isLast = false; !isLast; page += 1) {
      if (run.stop.aborted) throw reasonOf(run.stop);
      const listed = await templates.list({ page, limit }, run.stop);
      total ??= listed.total;
      organization ??= listed.organization;
      for (const row of listed.rows) found.set(row.id, row);
      isLast = listed.rows.length < limit && page * limit >= total;
      const of = Math.max(total, found.size);
      run.progress({ stage: 'listing', kind, done: found.size, of });
    }
    if (found.size >= (total ?? 0)) break;
  }
  stage(() => {
    staging.addListed([...found.values()]);
    staging.resolveKeys({ kind });
  });
  const complete = found.size >= (total ?? 0);
  const endedAt = run.clock.now();
  const about = { complete, size: found.size, organization, platformStartedAt: undefined };
  return { ...about, startedAt, endedAt, knownEntries };
}

interface Deciding {
  run: RunContext;
  templates: MirrorTemplates;
  known: Findings;
  tally: RunTally;
}

/** Decides about the candidates. While a change has no known outcome, nothing is planned. */
export async function decideTemplates(deciding: Deciding): Promise<void> {
  await decideCandidates(deciding.run, kind, { decide: (key) => void decideOne(deciding, key) });
}

/** Returns the number of planned changes. */
function decideOne({ run, templates, known, tally }: Deciding, key: Key): number {
  const states = statesOf(run, key, known);
  const decision = run.undo
    ? undoneIn(run, { kind, key }, (undoing) => templates.undo(states, undoing))
    : templates.decide(states);
  if (!decision) return 0;
  const { recorded, former } = states;
  const isSame = !recorded || recorded.id === decision.note?.id;
  const isAlone = isSame && !former && decision.forgets.length === 0;
  return stageDecision({ run, tally }, { kind, key, name: key, decision, states, isAlone });
}

function statesOf(run: RunContext, key: Key, { listing, certified }: Findings): TemplateStates {
  const { staging, recorded } = run.snapshot;
  const looked = staging.lookedAt(kind, key);
  const lookedAt = typeof looked === 'number' ? looked : undefined;
  const isListed = lookedAt !== undefined || (listing?.complete && looked === undefined);
  const rows = looked === 'assumed' ? [] : staging.observed(kind, key);
  const observed = rows.map((row) => decodeTemplate.observed(row));
  const own = recorded.get(kind, key);
  const assumed = isListed || own?.id === undefined ? [] : [own.id];
  const shown = observed.length > 0 ? observed.map(({ id }) => id) : assumed;
  const former = shown
    .flatMap((id) => recorded.ofId(kind, id, key) ?? [])
    .find((row) => certified && staging.desired(kind, row.key).length === 0);
  return {
    key,
    desired: staging.desired(kind, key).map((row) => decodeTemplate.desired(row)),
    recorded: own && decodeTemplate.recorded(own),
    former: former && decodeTemplate.recorded(former),
    observed,
    sight: isListed ? 'listed' : 'assumed',
    certified,
    at: lookedAt ?? listing?.startedAt ?? run.clock.now(),
  };
}

/** Lists the files that cannot be used. */
export function noticeInvalid({ snapshot }: RunContext, tally: RunTally): void {
  snapshot.stage(() => {
    for (const { key, id, place, invalid } of snapshot.staging.invalid(kind, 0, all)) {
      const { reason = '', fix = '', cause = 'unreadable-record', about = reason } = invalid ?? {};
      const of = { kind, key: key ?? place, class: 'invalid', part: '', cause, about } as const;
      const crmId = id === '' ? undefined : id;
      tally.notice({ ...of, place, crmId, reason: `${place}: ${reason}`, fix });
    }
  });
}

/** Returns the templates of a run as records to send. No other run is at the same template. */
export function sendableTemplates(applying: Applying, templates: MirrorTemplates): SendableRecords {
  const { snapshot } = applying.run;
  return {
    kind,
    phases: [0],
    look: templates.look,
    send: async (change, how) => templates.send(change, how, claimsIn(snapshot)),
    recover: templates.recover,
    isSuperseded: () => false,
    begin: () => true,
    end: () => undefined,
    forbids: () => false,
    stage: (key, rows) => snapshot.staging.addObserved(rows, key),
    decide: (key) => decideOne({ ...applying, templates }, key),
    acknowledge: (change, outcome, at) => ({
      row: acknowledgeTemplate(snapshot.recorded.get(kind, change.key), change, { ...outcome, at }),
    }),
  };
}

/** By key of the template: a fingerprint of what was tested last, and the addresses. */
const storedTests = storedFact<Record<string, { content: string; to: string[] }>>(
  'template tests',
  'the tests of templates',
);

function claimsIn({ meta, transaction }: Snapshot): TestClaims {
  return {
    claim({ key, content, to }) {
      const tests = storedTests.read(meta) ?? {};
      const last = tests[key];
      const sent = last?.content === content ? last.to : [];
      if (sent.includes(to)) return false;
      const now = { ...tests, [key]: { content, to: [...sent, to] } };
      transaction(() => storedTests.write(meta, now));
      return true;
    },
    release({ key, content, to }) {
      const tests = storedTests.read(meta) ?? {};
      const last = tests[key];
      if (last?.content !== content) return;
      const now = { ...tests, [key]: { content, to: last.to.filter((one) => one !== to) } };
      transaction(() => storedTests.write(meta, now));
    },
  };
}
