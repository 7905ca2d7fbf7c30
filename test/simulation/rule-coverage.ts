/**
 * Hears which rules and gates of consent decide, in whatever is imported after this file: functions
 * of the engine are taken from modules that pass on what they answer, so that the engine need not
 * know that it is watched.
 */
import { subscribe } from 'node:diagnostics_channel';
import { registerHooks } from 'node:module';
import { z } from 'zod';

const verdict = z.object({ by: z.string() });
const ruled = z.object({ answer: verdict });
const passed = z.object({
  given: z.tuple([z.unknown(), verdict], z.unknown()),
  answer: z.object({ verdict }),
});
let decided: string[] = [];

subscribe('decideChannel', (message) => {
  decided.push(ruled.parse(message).answer.by);
});
subscribe('passGates', (message) => {
  const { given, answer } = passed.parse(message);
  const { by } = answer.verdict;
  if (by !== given[1].by) decided.push(by);
});

const watched = new Map([
  [urlOf('rules.ts'), ['decideChannel']],
  [urlOf('gates.ts'), ['passGates']],
]);

function urlOf(name: string): string {
  return new URL(`../../src/records/contact/consent/${name}`, import.meta.url).href;
}

/** The module at `url`, but for functions that tell of every call. */
function watching(url: string, names: readonly string[]): string {
  const functions = names.map(
    (name) => `
    export function ${name}(...given) {
      const answer = own.${name}(...given);
      channel('${name}').publish({ given, answer });
      return answer;
    }`,
  );
  const text = `
    import { channel } from 'node:diagnostics_channel';
    import * as own from '${url}';
    export * from '${url}';
    ${functions.join('')}`;
  return `data:text/javascript,${encodeURIComponent(text)}`;
}

registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context);
    const names = watched.get(found.url);
    const isWatched = names !== undefined && !context.parentURL?.startsWith('data:');
    return isWatched ? { url: watching(found.url, names), shortCircuit: true } : found;
  },
});

/** Returns the ids of the rules and gates that decided since this was last called. */
export function takeRows(): string[] {
  const rows = decided;
  decided = [];
  return rows;
}
