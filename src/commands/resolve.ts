import { by, looking, onPerson, type Called, naming } from '../compose/command-options.ts';
import { Invalid } from '../domain/errors.ts';
import { settleConflict, resetRecord } from '../engine/erasure/person-decisions.ts';
import { withPerson } from '../app/run/person-command.ts';
import { type CommandModule, operatorName, type Shell } from '../compose/process-shell.ts';
import { requiredText, decisionOf } from '../app/run/flag-values.ts';
import { instant } from '../compose/output/format-values.ts';
import { addDecision, type Decision } from '../store/memory/audit-trail.ts';
import { liftQuarantine } from '../engine/context/circuit-breaker.ts';
import type { Snapshot } from '../store/snapshot.ts';
import { change } from '../app/snapshot-command.ts';
import { namedBy, type RecordName, wordOf } from '../views/lookup/person-names.ts';
import { counted } from '../domain/values/counted.ts';
import { createLog } from '../app/run/run-log.ts';

const resolveOptions = {
  ...looking,
  ...onPerson,
  'channel <id>': { text: 'the channel of the conflict', isRequired: true },
  in: 'the person wants in, although the mirror, or the platform, shows an opt-out',
  out: 'the person wants out',
  'reason <text>': { text: 'why', isRequired: true },
  'evidence <text>': {
    text: 'where it can be looked up: a ticket, a signed form',
    isRequired: true,
  },
  ...by,
};

const retryOptions = {
  ...naming,
  'reason <text>': 'why; the audit log keeps it',
  ...by,
  '[record]': 'an address, a hash or the key of a template; everything when left out',
  'read-again': 'have the next run read this person on the platform, and decide anew',
};

export const parts = {
  resolve: {
    options: resolveOptions,
    help: `
Records the decision, with who and when, and sends nothing: the next run does. \`explain\` shows
it. It reads the CRM and the platform, to decide about what they show now.

--in is accepted only where nobody is known to have opted out: for an opt-out that the mirror made
on the CRM's word, and for one that may be a default of the platform. It counts for that very
opt-out: if the person opts out again, they are out again. What a person did on the platform, a
block, a bounce, a complaint and an erasure are refused (exit 2).

--out goes to the do-not-contact list. Runs opt the person out of the channel as if the CRM said
so, until the CRM states an opt-in later (contacts.consentAt), or \`allow\` takes it back. Without a
conflict it is refused: record the no in the CRM, and call \`sync --person\`.

The texts are stored and logged: name no address in them.`,
    run: runResolve,
  },
  retry: {
    options: retryOptions,
    help: `
What the platform refused is not sent again until its record changes; an opt-out is tried again
after 1, 2, 4 ... hours, at most daily. After this the next run sends it once more, if the CRM
still wants it; until then it counts as rejected. Without a name it also ends a quarantine, in
which nothing but opt-outs is sent.

--read-again, for one person and with a --reason, also forgets how the platform last showed the
person and what the last run decided: the next run, a fast one too, reads the person there. What
protects the person is kept: every opt-out and who made it, the do-not-contact list, what an
operator decided, what awaits approval, and whose contact it is. While the outcome of a change of
the person is unknown, it exits with 75.`,
    run: runRetry,
  },
} satisfies Record<string, CommandModule>;

async function runResolve(called: Called<typeof resolveOptions>, shell: Shell): Promise<number> {
  const { channel, ...flags } = called.flags;
  if (flags.in === flags.out) {
    throw new Invalid('--in or --out is needed, and only one of them', {
      fix: 'say what the person wants',
    });
  }
  const as: 'in' | 'out' = flags.in ? 'in' : 'out';
  const fix = 'fill it: the decision is kept with it';
  const reason = requiredText('--reason', flags.reason, fix);
  const evidence = requiredText('--evidence', flags.evidence, fix);
  const by = requiredText('--by', flags.by ?? operatorName(shell), fix);
  return withPerson(called, shell, async ({ mirror, contacts, key, hash }) => {
    const caller = operatorName(shell);
    const asked = { contacts, key, channel, as, by, caller, reason, evidence };
    const at = await settleConflict(mirror, asked, { signal: shell.stop, abort: shell.abort });
    const settled = { channel, as, by, at: instant(at), reason, evidence };
    const does = { in: 'opts the person in', out: 'opts the person out where it is subscribed' };
    return {
      document: { mirror: mirror.name, person: hash, ...settled },
      lines: [
        `${hash} in ${channel} is resolved as an opt-${as}, by ${by}.`,
        `The next run ${does[as]}. \`crm-mirror explain\` shows the decision.`,
      ],
    };
  });
}

async function runRetry(called: Called<typeof retryOptions>, shell: Shell): Promise<number> {
  const { flags, args } = called;
  const [who] = args;
  const wanted = who === undefined ? undefined : wordOf(who);
  if (flags.readAgain) return readAgain(called, shell);
  const decision = decisionOf({ what: 'retry', at: Date.now() }, flags, shell);
  return change(flags, shell, ({ config, snapshot, names }) => {
    const nothing = { records: [], changes: 0, returns: 0, lifted: false };
    const done = snapshot ? releaseAll(snapshot, wanted, decision) : nothing;
    const { records, changes, returns, lifted } = done;
    const counts = { records: records.length, changes, returns, quarantineLifted: lifted };
    const isNothing = records.length === 0 && returns > 0;
    const name = records.map(names)[0] ?? who;
    const of = records.length === 1 ? name : counted(records.length, 'record');
    const line =
      records.length === 0
        ? `Nothing waits to be tried again${name === undefined ? '' : ` for ${name}`}.`
        : `The next run tries ${counted(changes, 'change')} of ${of} again.`;
    const lines = [
      ...(isNothing ? [] : [line]),
      ...(returns > 0
        ? [`The next run reports ${counted(returns, 'opt-out')} to the CRM again.`]
        : []),
      ...(lifted ? ['The quarantine is over.'] : []),
    ];
    return { document: { mirror: config.mirror, ...counts }, lines };
  });
}

/** In one transaction. */
function releaseAll(snapshot: Snapshot, wanted: string | undefined, decision: Decision) {
  const { retryLater, optOutReports, meta, transaction } = snapshot;
  const isMeant = wanted === undefined ? () => true : namedBy(wanted, snapshot);
  const records: RecordName[] = retryLater.records().filter(isMeant);
  const reports = optOutReports
    .refused({ kind: 'contact' })
    .map((key) => ({ kind: 'contact' as const, key }))
    .filter(isMeant);
  return transaction(() => {
    const sum = (of: readonly number[]): number => of.reduce((all, n) => all + n, 0);
    const changes = sum(records.map((record) => retryLater.release(record)));
    const returns = sum(reports.map((report) => optOutReports.release(report)));
    const lifted = wanted === undefined && liftQuarantine(meta);
    if (wanted === undefined) {
      if (records.length > 0 || returns > 0 || lifted) addDecision(snapshot, decision);
      return { records, changes, returns, lifted };
    }
    const named = [...records, ...reports];
    // A person is not named in the decision, but its entry has the mark.
    const people = named.filter(({ kind, key }) => kind === 'contact' && key.includes('@'));
    for (const key of new Set(people.map((one) => one.key))) addDecision(snapshot, decision, key);
    for (const one of named.filter((each) => !people.includes(each))) {
      const about = one.kind === 'template' ? one.key : null;
      addDecision(snapshot, { ...decision, about });
    }
    return { records, changes, returns, lifted };
  });
}

async function readAgain(called: Called<typeof retryOptions>, shell: Shell): Promise<number> {
  const { flags, args } = called;
  if (args.length === 0) {
    throw new Invalid('--read-again: name a person', { fix: 'retry PERSON --read-again' });
  }
  const fix = 'fill it: it is logged, and the audit log keeps it';
  const reason = requiredText('--reason', flags.reason ?? '', fix);
  const by = requiredText('--by', flags.by ?? operatorName(shell), fix);
  return withPerson(called, shell, async ({ mirror, key, hash }) => {
    const done = resetRecord(mirror, { key, by, caller: operatorName(shell), reason });
    const told = { person: hash, by, reason, at: instant(done.at) };
    createLog(shell, mirror.name).reset(told);
    const { recorded, changes, reports } = done;
    const document = { mirror: mirror.name, ...told, recorded, changes, reports };
    return {
      document,
      lines: [
        recorded
          ? `${hash} is read again: the next run reads this person on the platform and decides anew.`
          : `Nothing is recorded of ${hash}: each run that reads this person decides anew.`,
        ...(changes > 0 ? [`It tries ${counted(changes, 'refused change')} again.`] : []),
        ...(reports > 0 ? [`It reports ${counted(reports, 'opt-out')} to the CRM again.`] : []),
      ],
    };
  });
}
