/** The seeds of one core, told to the process that started this one. */
import { takeRows } from './rule-coverage.ts';

// Only now, so that the truth table of this engine is the one that is counted.
const { play } = await import('./play.ts');

const { kindNamed } = await import('./story/story-kinds.ts');

const [first = 0, end = 0, step = 1] = process.argv.slice(2, 5).map(Number);

function* seeds(): Generator<number> {
  for (let seed = first; seed < end; seed += step) yield seed;
}

// Nobody is left to be told.
process.on('disconnect', () => process.exit());
process.send?.(
  await play(seeds(), {
    takeRows,
    heard: (news) => process.send?.(news),
    kind: kindNamed(process.argv[5]),
  }),
);
process.disconnect();
