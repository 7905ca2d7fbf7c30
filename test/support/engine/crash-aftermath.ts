/** What must be so when the runs of a mirror have ended: then, and when nothing more happens. */
import { expect } from 'vitest';
import { recordedBody } from '../../../src/records/contact/observe/contact-state.ts';
import type { RecordProblem } from '../../../src/domain/record-problem.ts';
import type { Played, Round } from './concurrency-scenario.ts';
import { keyOf, shownOf, type Sent } from './outside-observer.ts';
import { wishesOf } from './sample-people.ts';

/** After a round, whatever failed in it. */
export function complaintsOf({ stage, onlooker, summaries }: Played): string[] {
  const { fates, sent } = onlooker;
  const keys = new Set([...fates.keys(), ...sent.map(({ key }) => key)]);
  const problems = summaries.flatMap(({ name, summary }) =>
    summary.problems
      .filter((problem) => !isTrue(problem, fates.get(problem.key)))
      .map(({ key, part, reason }) => `(5) ${name} says of ${key}, ${part}: ${reason}`),
  );
  const entries = [...keys].flatMap((key) =>
    stage.ledger
      .concerning({ key, ids: [] })
      .filter(({ cause, part }) => !happened(cause, part, fates.get(key)))
      .map(({ cause, part }) => `(5) the ledger has of ${key}: ${cause} ${part}`),
  );
  return [...onlooker.complaints, ...problems, ...entries, ...undone({ stage, onlooker })];
}

/** Whether something happened of which a conflict speaks. */
function isTrue({ class: is, part, reason }: RecordProblem, fates?: ReadonlySet<string>): boolean {
  if (is !== 'conflict') return true;
  if (reason.includes('taken away')) return happened('vanished', part, fates);
  if (reason.includes('left this channel')) return happened('opt_out', part, fates);
  return !reason.includes('from all mail,') || happened('unsubscribed', part, fates);
}

/** An unanswered opt-out may count as the person's own; another contact has its own channels. */
function happened(cause: string, part: string, fates: ReadonlySet<string> = new Set()): boolean {
  if (fates.has('failed opt_out') || fates.has('failed opt_in')) return true;
  if (cause !== 'opt_out') return fates.has(cause);
  return fates.has(`left ${part}`) || fates.has('vanished');
}

/** What was acknowledged last stands, on the platform and in what is recorded. */
function undone({ stage, onlooker }: Pick<Played, 'stage' | 'onlooker'>): string[] {
  const { sent, touched, fates } = onlooker;
  const last = new Map(sent.map((one) => [`${one.key} ${one.channel}`, one]));
  const isSure = ({ key, status = 0, leftAt }: Sent): boolean =>
    status >= 200 &&
    status < 300 &&
    (touched.get(key) ?? 0) < leftAt &&
    ![...(fates.get(key) ?? [])].some((fate) => fate.startsWith('failed'));
  return [...last.values()].filter(isSure).flatMap(({ run, key, channel, what }) => {
    const said = `(5) ${run.name}: ${what} ${key} ${channel} was acknowledged`;
    const is = shownOf(stage, key)[channel];
    if (is !== what) return [`${said}, and the platform shows ${is ?? 'nothing'}`];
    const row = stage.snapshot.recorded.get('contact', key);
    if (!row) return isNamed(stage, key) ? [`${said}, and is not recorded`] : [];
    const recorded = recordedBody.parse(JSON.parse(row.body)).channels[channel];
    const isTheirs = recorded?.by === 'platform' && what === 'opt_out';
    const isFalse = isTheirs && !fates.get(key)?.has(`left ${channel}`);
    if (recorded?.is === what && !isFalse) return [];
    return [`${said}, and recorded is ${JSON.stringify(recorded)}`];
  });
}

function isNamed({ people }: Played['stage'], key: string): boolean {
  return people.some((record) => keyOf(record) === key);
}

/** After two runs in which nothing happened there is nothing left to do. */
export async function expectCalm(played: Played): Promise<void> {
  const { stage, summaries } = played;
  const calm: Round = { mode: 'full', before: [], moments: [], faults: [] };
  for (let run = 1; run <= 2; run += 1) {
    await stage.clock.advance(3_600_000);
    await played.play(calm);
    expectNone(`calm run ${run}`, complaintsOf(played));
  }
  expectNone('(4) the second calm run', summaries[0]?.summary.reasons ?? []);
  expectNone('(3) the journal is open', stage.snapshot.journal.open('contact'));
  stage.writes();
  await played.play(calm);
  expectNone('(4) something is left to do', stage.writes());
  const isSaid = (key: string, part: string): boolean =>
    stage.snapshot.problems.get({ kind: 'contact', key, class: 'conflict', part }) !== undefined;
  const wrong = wishesOf(stage).filter(({ address, channel, wish }) => {
    const is = shownOf(stage, address)[channel];
    if (wish === 'opt_out') return is === 'opt_in';
    return wish === 'opt_in' && is !== 'opt_in' && !isSaid(address, channel);
  });
  expectNone('(4) the platform is not as the CRM wants', wrong);
}

/** A message that names them all. */
export function expectNone(what: string, found: readonly unknown[]): void {
  if (found.length === 0) return;
  const lines = found.map((one) => (typeof one === 'string' ? one : JSON.stringify(one)));
  expect.fail([what, ...lines].join('\n  '));
}
