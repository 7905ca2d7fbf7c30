/**
 * The steps of a run for templates: it reads their files, lists them on the platform, decides about
 * those that differ, and sends what the guards let pass. There are hundreds of them, so each step
 * takes all at once, and no other run is at the same template.
 *
 * It remembers which content of a template was sent as a test to which addresses, so that nobody
 * gets the same test twice. A claim is on disk before the test is sent: after a crash in between,
 * the test counts as sent.
 */
import type { JournaledChange } from '../../domain/change.ts';
import { NotSent } from '../../domain/errors.ts';
import type { Key } from '../../domain/record.ts';
import { outcomeOf, type SendOutcome } from '../../records/change-outcome.ts';
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
import {
  type Applying,
  type Attempt,
  knownOf,
  type Late,
  plannedRecords,
  recordFailure,
  recordOutcome,
  recordsAtOnce,
  sendInOrder,
  type Sent,
  waitForArrival,
  withTarget,
} from '../apply/record-outcome.ts';
import type { MirrorTemplates } from '../context/mirror-context.ts';
import { isFresh, openChanges, type RunContext } from '../context/run-context.ts';
import { type Findings, noFindings, type PlatformListing } from '../context/run-results.ts';
import type { RunTally } from '../context/run-tally.ts';
import { each, inTurns } from '../context/work-in-parts.ts';
import { isTooLate } from '../guard/plan-rules.ts';
import { decideAgain, noteOpen, stageDecision, undoneIn } from '../plan/decide-changes.ts';
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
    findings: { ...noFindings, certified, whole: true, reading: name, sizes },
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

/** Makes the templates candidates that may need a decision; of an undone run, those it changed. */
export async function selectTemplates(run: RunContext, { listing }: Findings): Promise<void> {
  const { candidates, stage } = run.snapshot;
  if (run.undo) {
    for await (const chunk of inTurns(run, run.undo.chunks())) run.undo.select(kind, chunk);
    return;
  }
  const range = { kind, ...everything, absent: true } as const;
  stage(() => {
    if (listing) candidates.full(range);
    else candidates.fast(range);
    candidates.parked(kind);
  });
}

interface Deciding {
  run: RunContext;
  templates: MirrorTemplates;
  known: Findings;
  tally: RunTally;
}

/** Decides about the candidates. While a change has no known outcome, nothing is planned. */
export function decideTemplates(deciding: Deciding): void {
  const { run } = deciding;
  const open = new Set(run.snapshot.journal.open(kind).map(({ key }) => key));
  const keys = run.snapshot.candidates.next(kind, '', all);
  run.snapshot.stage(() => {
    for (const key of keys) {
      if (open.has(key)) noteOpen(run, { kind, key });
      else decideOne(deciding, key);
    }
  });
  run.progress({ stage: 'deciding', kind, done: keys.length, of: undefined });
}

/** Makes the decision for one template. Returns the number of planned changes. */
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

/** Shared by all sends of templates. */
export interface ApplyingTemplates extends Applying {
  templates: MirrorTemplates;
}

/** Sends the planned changes until the slice ends; those of one template in order. */
export async function applyTemplates(applying: ApplyingTemplates): Promise<void> {
  const { run } = applying;
  const { journal } = run.snapshot;
  const sending = (isFollowUp: boolean) => ({
    isFollowUp,
    attempt: (change: JournaledChange, how: Attempt) => attempt(applying, change, how),
    replan(key: Key, isSettled: boolean) {
      const decide = () => decideOne(applying, key);
      return decideAgain(run, { kind, key }, { isSettled, decide, review: applying.review });
    },
    record: (change: JournaledChange, sent: Sent) => recordSent(applying, change, sent),
  });
  const planned = plannedRecords(applying, { kind, phase: 0 });
  await each(planned, recordsAtOnce, async ([key, changes]) => {
    if (!(await sendInOrder(applying, changes, sending(false)))) return;
    const more = journal.planned({ run: run.id, kind, phase: 0, key });
    await sendInOrder(applying, more, sending(true));
  });
}

/**
 * Reads the template if what is known about it is too old, then sends the change. It is marked as
 * `sent` only at the moment the request is sent; if it waited for the rate limit for so long that
 * this read is too old as well, it is read again.
 */
async function attempt(
  applying: ApplyingTemplates,
  change: JournaledChange,
  { stop, heard, isFollowUp }: Attempt,
): Promise<SendOutcome | Late> {
  const { run, templates, breaker } = applying;
  const isClosed = () => !isFollowUp && isTooLate(run, change);
  for (;;) {
    if (isClosed()) return 'closed';
    const known = knownOf(applying, change);
    if (!known.fresh && breaker.blinds(change)) {
      return { is: 'held', why: 'it cannot be looked at before it is sent' };
    }
    const provenAt = known.fresh ? known.at : run.clock.now();
    const looked = await templates.look(change, known);
    if (looked) return looked.is === 'unknown' ? { is: 'unsent', why: looked.why } : looked;
    let late: 'too old' | 'closed' | undefined;
    const leaves = async () =>
      run.groupCommit(() => {
        if (stop.aborted || breaker.holds(change)) throw new NotSent('stopped before it was sent');
        late = isFresh(run, provenAt) ? undefined : 'too old';
        if (isClosed()) late = 'closed';
        if (late) throw new NotSent(`what is known of it is ${late}`);
        run.snapshot.journal.move(change.seq, 'sent', { at: run.clock.now() });
      });
    const outcome = await templates.send(
      change,
      {
        signal: stop,
        abort: run.abort,
        leaves,
        answered: (answer) => void (heard.answer = answer),
      },
      claimsIn(run.snapshot),
    );
    if (outcome.is !== 'held' || !late) return outcome;
    if (late === 'closed') return late;
  }
}

/** Finds out the unknown outcomes of changes to templates, but not those of other runs. */
export async function recoverTemplates(applying: ApplyingTemplates): Promise<void> {
  const { run, templates, breaker, toBeListed } = applying;
  const { staging, candidates } = run.snapshot;
  for (const open of openChanges(run, kind)) {
    if (run.stop.aborted || breaker.stopped()) return;
    const change = withTarget(run, open);
    await waitForArrival(applying, change);
    const late = change.run !== run.id || !isFresh(run, change.sentAt ?? 0);
    let outcome: SendOutcome;
    try {
      outcome = await templates.recover(change, { late, signal: run.abort });
    } catch (error) {
      const failed = outcomeOf(error);
      if (failed.is !== 'rejected') breaker.note(change, failed);
      continue;
    }
    await recordSent(applying, change, { outcome });
    if (outcome.is !== 'acked') continue;
    if (!toBeListed) staging.assume(kind, change.key);
    candidates.add(kind, change.key);
  }
}

/** Records an outcome, and what has to be decided again because of it. */
async function recordSent(
  applying: ApplyingTemplates,
  change: JournaledChange,
  sent: Sent,
): Promise<void> {
  const { run, toBeListed } = applying;
  const { outcome } = sent;
  const { key } = change;
  const { staging, candidates, recorded, journal, problems } = run.snapshot;
  const record = (): boolean => {
    const at = run.clock.now();
    if (outcome.is !== 'acked') {
      recordFailure(applying, change, outcome, (_, rows) => staging.addObserved(rows, key));
      return false;
    }
    const row = acknowledgeTemplate(recorded.get(kind, key), change, { ...outcome, at });
    journal.move(change.seq, 'acked', { at });
    if (outcome.more) {
      staging.assume(kind, key);
      candidates.add(kind, key);
    } else if (row?.seenAt === at) staging.addSighted(kind, key, at);
    if (row) recorded.put(row);
    // The observation of a template that needs a new decision is older than the change just made.
    if (!toBeListed && candidates.has(kind, key)) staging.assume(kind, key);
    problems.drop(change);
    return row?.desired !== undefined;
  };
  await recordOutcome(applying, change, { ...sent, record });
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
