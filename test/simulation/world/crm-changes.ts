/**
 * A CRM that lists what changed. A cursor names what it has listed until then: people the reading
 * of a run shows otherwise it tells, the old and then the new, as a page does that is read twice.
 */
import { Unavailable } from '../../../src/domain/errors.ts';
import type { Certificate, Source } from '../../../src/sources/source.ts';
import type { CrmRecord, Reading } from './crm.ts';
import type { Life } from './process-life.ts';
import type { Ground } from './process.ts';
import type { RunStep } from '../story/steps.ts';

interface Asked {
  life: Life;
  step: RunStep;
  reading: Reading;
}

/** The same source, which tells its changes as well. */
export function telling(ground: Ground, whole: Source, { life, step, reading }: Asked): Source {
  const { records, certified } = reading;
  const certificate = (): Certificate => {
    if (!certified) return { complete: false, reading: 'part', why: 'cut short', fix: 'ask again' };
    ground.told.push(records);
    return { complete: true, reading: 'changes', cursor: String(ground.told.length - 1) };
  };
  return {
    ...whole,
    async *read(request) {
      const found = yield* whole.read(request);
      const { complete } = found;
      return complete ? { ...found, ...certificate(), reading: found.reading } : found;
    },
    async *changes(since) {
      const told = ground.told[Number(since)];
      if (!told || step.reading === 'empty') return 'lost';
      ground.reached.note('run', 'the CRM lists what changed');
      const changed = changedSince(told, records);
      for (const [at, value] of changed.entries()) {
        await life.wait(Promise.resolve());
        if (step.reading === 'failing' && at === Math.floor(changed.length / 2)) {
          throw new Unavailable('the CRM does not answer', { acted: 'no' });
        }
        yield [{ where: `change ${at + 1}`, value }];
      }
      return certificate();
    },
    async one(id) {
      await life.wait(Promise.resolve());
      const value = records.find((record) => record['id'] === id);
      return value && { where: `record ${id}`, value };
    },
  };
}

function changedSince(told: readonly CrmRecord[], records: readonly CrmRecord[]): CrmRecord[] {
  const known = new Set(told.map((record) => JSON.stringify(record)));
  const fresh = records.filter((record) => !known.has(JSON.stringify(record)));
  const before = told.filter(({ id }) => fresh.some((record) => record['id'] === id));
  return [...before, ...fresh];
}
