/** What a person does at the command line between runs: forgets somebody, or allows them again. */
import { existsSync, readFileSync } from 'node:fs';
import { withMemory } from '../../../src/store/memory/memory.ts';
import { allow } from '../../../src/engine/erasure/person-decisions.ts';
import { forget, type Certificate } from '../../../src/engine/erasure/forget-person.ts';
import type { Mirror, MirrorContacts } from '../../../src/engine/context/mirror-context.ts';
import { closeAuditLog } from '../../../src/engine/context/run-context.ts';
import { addressOf } from '../../support/engine/sample-people.ts';
import { keyIn, type Reading } from './crm.ts';
import { checkOuting } from '../checks/end-checks.ts';
import { contentOf, placeOf } from './snapshot-files.ts';
import type { Known } from '../checks/checker-state.ts';
import { lead, type Ground, type Lived } from './process.ts';
import { calm, type Forgetting } from '../story/steps.ts';
import { movedOf } from './world.ts';

/** The person a command is about. */
interface Target {
  who: number;
  moved: boolean;
}

export function addressNamed({ who, moved }: Target, count: number): string {
  const address = addressOf(who % Math.max(1, count));
  return moved ? movedOf(address) : address;
}

/** Answers what the process has left, and whether it was refused for a key that is not proven. */
export async function forgetOne(
  ground: Ground,
  step: Forgetting,
  key: string,
): Promise<Lived<Certificate>> {
  const { world, known, reached } = ground;
  const { faults, killed, stopped, latency } = step;
  await world.clock.advance(1000);
  const isThere = known.witness.present(key).length > 0;
  const ids = idsOf(known, key, { records: world.people, certified: true });
  // After an erasure killed before its answer, it is unknown what was recorded of the person.
  const isOpen = known.erasures.unsettled().has(key);
  known.erasures.begin(key, {
    at: world.clock.monotonic(),
    ids: [...ids, ...(isOpen ? known.memories.everIdsOf(key) : known.memories.unmetIdsOf(key))],
  });
  known.standing.drop(key);
  known.canaries.drop(key);
  known.undone.drop(key);
  known.rejections.drop(key);
  const lived = await lead(
    ground,
    { ...calm, faults, killed, stopped, latency },
    {
      forgets: key,
      async work(mirror, { stop: signal, abort }) {
        const person = { contacts: peopleOf(mirror), key, by: 'operator' };
        const done = await forget(mirror, person, { signal, abort });
        await writeDecisions(mirror);
        return done;
      },
    },
  );
  const [first] = ground.found;
  if (first) throw first;
  checkOuting(lived.outing, lived.counts, known);
  if (lived.killed) reached.note('run', 'the process is killed while somebody is forgotten');
  const { done } = lived;
  ground.log(`         ${done ? (done.failure ?? 'forgotten') : 'not to its end'}`);
  if (!done) return lived;
  const certified = done.failure === undefined;
  const named = idsOf(known, key, done.crm.read ? lived.outing.people : undefined);
  known.erasures.enter(key, { at: world.clock.monotonic(), certified, ids: named });
  if (certified) conclude(ground, key);
  else reached.note('run', 'somebody is partly forgotten');
  if (certified && isThere) reached.note('run', 'somebody on the platform is forgotten');
  return lived;
}

function conclude({ path, known, reached }: Ground, key: string): void {
  const { memories, witness, judge } = known;
  reached.note('run', 'somebody is forgotten');
  memories.forget(key);
  const there = witness.present(key).length > 0 && `${key} was forgotten, and is on the platform`;
  judge('forgotten people are not on the platform', there);
  const trace = isTraceIn(path, key) && `${key} was forgotten, and stands in the snapshot`;
  judge('forgotten people leave no trace in the snapshot', trace);
  const audited = isAudited(path, key) && `${key} was forgotten, and the audit log knows them`;
  judge('forgotten people leave no trace in the audit log', audited);
}

/** As the command line does it after a command about one person. */
export async function writeDecisions(mirror: Mirror): Promise<void> {
  await closeAuditLog(mirror, false);
}

/** By their mark, or by their address. */
function isAudited(path: string, key: string): boolean {
  const place = placeOf(path);
  const isKnown = withMemory(place, ({ log }) => log.people.find(key)) !== undefined;
  const files = [place.path, `${place.path}-wal`].filter((file) => existsSync(file));
  return isKnown || files.some((file) => readFileSync(file, 'latin1').includes(key));
}

/** In its rows, or in what is left of rows in its files. */
function isTraceIn(path: string, key: string): boolean {
  const text = key.replaceAll('.', String.raw`\.`);
  const inRows = new RegExp(`(?<![\\w.-])${text}(?![\\w.-])`);
  // The fields of a row stand there without anything between them.
  const inFile = new RegExp(`(?<!new-)${text}`);
  const files = [path, `${path}-wal`].filter((file) => existsSync(file));
  return (
    inRows.test(contentOf(path) ?? '') ||
    files.some((file) => inFile.test(readFileSync(file, 'latin1')))
  );
}

export async function allowAgain(ground: Ground, key: string): Promise<void> {
  const { world, known, reached } = ground;
  await world.clock.advance(1000);
  const { done, outing } = await lead(ground, calm, {
    forgets: key,
    async work(mirror, { stop: signal, abort }) {
      const target = { contacts: peopleOf(mirror), key, reason: 'asked for it', by: 'operator' };
      const allowed = await allow(mirror, target, { signal, abort });
      known.audit.decided('allow');
      await writeDecisions(mirror);
      return allowed;
    },
  });
  if (done?.taken.some(({ cause }) => cause === 'erasure'))
    reached.note('run', 'a forgotten person is allowed again');
  if (done?.freed.some(({ cause }) => cause === 'erasure'))
    reached.note('run', 'a person forgotten under another address is allowed again');
  const ids = idsOf(known, key, outing.people);
  known.erasures.allow(key, ids);
  known.memories.allow(key, ids);
  known.statements.allow(key);
  known.settlements.allow(key, ids);
  known.undone.drop(key);
  known.rejections.drop(key);
}

export function peopleOf({ contacts }: Mirror): MirrorContacts {
  if (!contacts) throw new Error('a mirror of people has them');
  return contacts;
}

/** Under which ids the CRM, if it was read, and the snapshot know somebody. */
function idsOf({ memories }: Known, key: string, reading: Reading | undefined): Set<string> {
  const records = (reading?.records ?? []).filter((record) => keyIn(record) === key);
  return new Set([...memories.idsOf(key), ...records.map(({ id }) => String(id))]);
}
