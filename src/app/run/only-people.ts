/** Reads what a run is limited to: --only, and the file of --people. */
import { readFileSync } from 'node:fs';
import { codeOf, Invalid } from '../../domain/errors.ts';
import type { RunOptions } from '../../engine/context/mirror-context.ts';
import type { OnlyPeople } from '../../engine/context/people-selection.ts';

/** Reads the file. Lines that begin with # are comments. Throws Invalid if it names nobody. */
export function readOnlyPeople(file: string): OnlyPeople {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file));
  } catch (error) {
    const why = codeOf(error) || 'no UTF-8';
    throw new Invalid(`--people ${file}: the file cannot be read (${why})`, {
      fix: 'name a text file in UTF-8',
    });
  }
  const entries = text
    .split(/\r\n|\r|\n/)
    .map((line, at) => ({ line: at + 1, word: line.trim() }))
    .filter(({ word }) => word !== '' && !word.startsWith('#'));
  if (entries.length > 0) return { file, entries };
  throw new Invalid(`--people ${file}: the file names nobody`, {
    fix: 'write one address or CRM id on each line',
  });
}

/** Returns the record type that a flag names. Throws Invalid for another word. */
export function onlyOf(word: string | undefined): RunOptions['only'] {
  if (word === undefined || word === 'contacts' || word === 'templates') return word;
  throw new Invalid(`--only ${word}: there are contacts and templates`);
}
