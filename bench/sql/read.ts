/** Reads a database wholly, as a run does, in a process of its own. */
import { systemClock as clock } from '../../src/http/system-clock.ts';
import { sqlOptions } from '../../src/sources/sql/options.ts';
import { sqlSource } from '../../src/sources/sql/sql-source.ts';
import { given } from '../stage/child.ts';

export interface ReadTask {
  url: string;
  table: string;
}

export interface ReadOutcome {
  rows: number;
  ms: number;
  peakMb: number;
  complete: boolean;
}

const task: ReadTask = JSON.parse(given());
const source = sqlSource(sqlOptions.parse({ type: 'sql', updatedAt: 'updated_at', ...task }), {
  clock,
  id: 'id',
});
const began = performance.now();
const fields = ['id', 'email', 'newsletter', 'deleted_at'];
const reading = source.read({ fields, signal: new AbortController().signal });
let rows = 0;
let peak = 0;
let step = await reading.next();
while (!step.done) {
  rows += step.value.length;
  peak = Math.max(peak, process.memoryUsage.rss());
  step = await reading.next();
}
const outcome: ReadOutcome = {
  rows,
  ms: performance.now() - began,
  peakMb: peak / 1e6,
  complete: step.value.complete,
};
process.send?.(outcome);
