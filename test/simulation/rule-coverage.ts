/**
 * Hears what the truth table decides, in whatever is imported after this file: functions of the
 * engine are taken from modules that pass on what they answer, so that the engine need not know
 * that it is watched.
 */
import { subscribe } from 'node:diagnostics_channel';
import { registerHooks } from 'node:module';
import { z } from 'zod';
import { beyond } from '../../src/records/contact/consent/consent-conflicts.ts';

const verdict = z.object({ answer: z.object({ row: z.number(), do: z.string() }) });
const moved = z.object({ answer: z.boolean() });
const told = z.object({ answer: z.object({ contacts: z.array(z.unknown()) }) });
const explained = z.object({ given: z.tuple([z.number()], z.unknown()) });
let decided: string[] = [];

subscribe('decideChannel', (message) => {
  const { answer } = verdict.parse(message);
  decided.push(`${answer.row} ${answer.do}`);
});
subscribe('hasMoved', (message) => {
  if (moved.parse(message).answer) decided.push(`${beyond.movedAway} opt_out`);
});
subscribe('isForbidden', (message) => {
  if (moved.parse(message).answer) decided.push(`${beyond.stated} opt_out`);
});
subscribe('renamedTargets', (message) => {
  const { contacts } = told.parse(message).answer;
  if (contacts.length > 0) decided.push(`${beyond.renamed} opt_out`);
});
// The other rows beyond the table show only in what is said of them.
subscribe('conflictOf', (message) => {
  const [row] = explained.parse(message).given;
  if (Object.values(beyond).some((other) => other === row)) decided.push(`${row} conflict`);
});

const watched = new Map([
  [urlOf('consent-rules.ts'), ['decideChannel']],
  [urlOf('consent-conflicts.ts'), ['conflictOf']],
  [urlOf('changed-address.ts'), ['hasMoved', 'isForbidden']],
  [urlOf('renamed-contact.ts'), ['renamedTargets']],
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

/** What decided since this was last asked: rows, each with what it did. */
export function takeRows(): string[] {
  const rows = decided;
  decided = [];
  return rows;
}
