/** Two people of a CRM and the process that keeps their mirror, for runs side by side. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Summary } from '../../../src/engine/report/run-summary.ts';
import { openStage, type Stage, type StageOptions } from './engine-stage.ts';

export const ann = 'ann@example.com';

export const record = (id: string, email: string, wished = 'yes') => ({
  id,
  email,
  ch_news: wished,
});

/** In a folder that is gone when the test has finished. */
export function stageOf(options: StageOptions = {}): Stage {
  const folder = mkdtempSync(join(tmpdir(), 'beside-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const stage = openStage({ path: join(folder, 'snapshot.sqlite'), ...options });
  stage.people.push(record('1', ann), record('2', 'bob@example.com'));
  return stage;
}

/** A run about the one who stands under this id. */
export const alone = async (stage: Stage, id: string): Promise<Summary> =>
  stage.clock.run(stage.one(id));

export const sent = (stage: Stage): string[] =>
  stage.writes().map((write) => `${write.subscription} ${write.email}`);

export function wish(stage: Stage, id: string, value: string): void {
  for (const person of stage.people) if (person['id'] === id) person['ch_news'] = value;
}
