/** Proposes the flag that makes a column an opt-out. The user reads what it states, and decides. */
import { isPlain } from '../../domain/unknown-words.ts';
import { quoted } from '../../sources/shared/field-suggestions.ts';
import { type Chosen, mayBeAny } from './column-words.ts';
import { saysNo } from './flag-columns.ts';
import { wordFlag } from './flag-lists.ts';
import type { Value } from './sample/sample.ts';
import type { Answer } from './sample/undecided.ts';
import { isMarker } from './yes-no-words.ts';

type Column = Pick<Chosen, 'column' | 'unknown'>;

/**
 * Returns the flag, which names every word that is unknown. In a column that is named like an
 * opt-out each of them opts out. In another one those do that refuse something; if none does, and
 * there are several, the words are left to the user. `WORD` stands for what is not shown.
 */
export function optOutAnswer(
  { column, unknown }: Column,
  { isNamed, asTheyAre }: { isNamed: boolean; asTheyAre: boolean },
): Answer {
  const name = quoted(column.name);
  const says = 'says that a person wants no mail';
  if (unknown.length === 0)
    return { unsubscribed: column.name, states: `a yes in ${name} ${says}` };
  if (mayBeAny({ column, unknown })) {
    const words = wordFlag(column.name, { yes: 'any' });
    return { words, states: `every value of ${name} but a no ${says}` };
  }
  const shown = (values: readonly Value[] = []): string[] => {
    const words = values.map((one) => (asTheyAre || isPlain(one) ? one.text : 'WORD'));
    return [...new Set(words)];
  };
  const found = listsOf({ column, unknown }, isNamed);
  const lists = found ? { yes: shown(found.yes), no: shown(found.no) } : yours;
  const filled = Object.entries(lists).filter(([, list]) => list.length > 0);
  const words = wordFlag(column.name, Object.fromEntries(filled));
  if (!found) return { words, states: `each WORD is a value of ${name} as you know it` };
  const yes = lists.yes.length > 0 ? listed(lists.yes) : 'a yes';
  const rest = lists.no.length > 0 ? `, and ${listed(lists.no)} does not` : '';
  const isMasked = Object.values(lists).flat().includes('WORD');
  const note = isMasked ? ' (--addresses shows each WORD)' : '';
  return { words, states: `${yes} in ${name} ${says}${rest}${note}` };
}

const yours = { yes: ['WORD'], no: ['WORD'] };
/** More words than this are not put into a flag. */
const mostWords = 60;

/** Returns the unknown words by what they would mean; undefined: the user has to say it. */
function listsOf(
  { column, unknown }: Column,
  isNamed: boolean,
): { yes: readonly Value[]; no: readonly Value[] } | undefined {
  if (unknown.length > mostWords) return undefined;
  const none = unknown.filter(({ text }) => isMarker(text));
  const words = unknown.filter((value) => !none.includes(value));
  if (isNamed || words.length === 0 || column.values.length - none.length === 1) {
    return { yes: words, no: none };
  }
  if (!column.values.some(saysNo)) return undefined;
  const others = words.filter((value) => !saysNo(value));
  return { yes: words.filter(saysNo), no: [...others, ...none] };
}

function listed(words: readonly string[]): string {
  return words.map((word) => JSON.stringify(word)).join(' or ');
}
