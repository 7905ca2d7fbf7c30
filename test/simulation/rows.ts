/**
 * Hears what the truth table decides, in whatever is imported after this file: three functions of
 * the engine are taken from modules that pass on what they answer, so that the engine need not
 * know that it is watched.
 */
import { subscribe } from 'node:diagnostics_channel';
import { registerHooks } from 'node:module';
import { z } from 'zod';
import { beyond } from '../../src/kind/contact/conflict.ts';

const verdict = z.object({ answer: z.object({ row: z.number(), do: z.string() }) });
const moved = z.object({ answer: z.boolean() });
const explained = z.object({ given: z.tuple([z.number()], z.unknown()) });
let decided: string[] = [];

subscribe('decideChannel', (message) => {
  const { answer } = verdict.parse(message);
  decided.push(`${answer.row} ${answer.do}`);
});
subscribe('hasMoved', (message) => {
  if (moved.parse(message).answer) decided.push(`${beyond.movedAway} opt_out`);
});
// The other rows beyond the table show only in what is said of them.
subscribe('conflictOf', (message) => {
  const [row] = explained.parse(message).given;
  if (Object.values(beyond).some((other) => other === row)) decided.push(`${row} conflict`);
});

const watched = new Map([
  [urlOf('decide.ts'), 'decideChannel'],
  [urlOf('conflict.ts'), 'conflictOf'],
  [urlOf('moved.ts'), 'hasMoved'],
]);

function urlOf(name: string): string {
  return new URL(`../../src/kind/contact/${name}`, import.meta.url).href;
}

/** The module at `url`, but for one function that tells of every call. */
function watching(url: string, name: string): string {
  const text = `
    import { channel } from 'node:diagnostics_channel';
    import { ${name} as own } from '${url}';
    export * from '${url}';
    const calls = channel('${name}');
    export function ${name}(...given) {
      const answer = own(...given);
      calls.publish({ given, answer });
      return answer;
    }`;
  return `data:text/javascript,${encodeURIComponent(text)}`;
}

registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context);
    const name = watched.get(found.url);
    const isWatched = name !== undefined && !context.parentURL?.startsWith('data:');
    return isWatched ? { url: watching(found.url, name), shortCircuit: true } : found;
  },
});

/** What decided since this was last asked: rows, each with what it did. */
export function takeRows(): string[] {
  const rows = decided;
  decided = [];
  return rows;
}
