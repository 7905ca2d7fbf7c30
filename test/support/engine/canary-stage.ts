/** A mirror with a canary, and one that is under way. */
import type { CanaryPolicy } from '../../../src/domain/guards/canary.ts';
import { storedCanaries } from '../../../src/engine/guard/canary-book.ts';
import { exportOf, range } from './change-volume.ts';
import { openStage, type Stage, type StageOptions } from './engine-stage.ts';

export const policy: CanaryPolicy = {
  percent: 10,
  floor: 5,
  waitMs: 30 * 60_000,
  bounds: { unsubscribed: 20, refused: 20, drift: 20 },
};
export const minute = 60_000;

/** A mirror of twenty people with a canary from then on. */
export async function watched(more: StageOptions = {}) {
  const options: StageOptions = { policy: { deletes: 'owned', absent: 'opt_out' }, ...more };
  const stage = openStage(options);
  stage.people.push(...range(0, 20));
  await stage.sync();
  await stage.sync();
  stage.writes();
  Object.assign(options, { canary: policy });
  return { stage, options };
}

/** The same, with thirty new people by a new mapping, five of whom are in. */
export async function begun(more: StageOptions = {}) {
  const found = await watched(more);
  Object.assign(found.options, { manner: 'new' });
  exportOf(found.stage, range(0, 50));
  const run = await found.stage.sync();
  return { ...found, run };
}

/** The stored canary of a class. */
export const canaryOf = (stage: Stage, of: 'opt_in' | 'delete' | 'template' = 'opt_in') =>
  storedCanaries(stage.snapshot.meta)?.classes[of];
/** The people of the slice, as the platform shows them. */
export const created = (stage: Stage) => stage.emulator.world.contacts().slice(0, -20);
