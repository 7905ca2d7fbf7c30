/** Tells a dossier on one screen, without an address. */
import { counted } from '../../domain/values/counted.ts';
import { renderProblem } from '../../domain/errors.ts';
import { type Line, lineOf, styled } from '../../compose/output/text-style.ts';
import type { Dossier } from './dossier-document.ts';

/** Says whether anything is known of the person. */
export function headOf({ known, erased, missing, audit }: Dossier): string {
  const unread = missing.length > 0 ? ' Not every part could be read.' : '';
  const altered = ' The audit log was changed: what follows from it is not proven.';
  const rest = `${unread}${audit?.whole === false ? altered : ''}`;
  const list =
    'They were erased on request: the do-not-contact list holds a keyed hash of the address' +
    ` since ${erased ?? ''}, so that they are not brought back.`;
  if (known) return `This is what is known of the person.${erased ? ` ${list}` : ''}${rest}`;
  return `Nothing is known of this person.${erased ? ` ${list}` : ''}${rest}`;
}

/** Returns the lines for people. `who` names the person. */
export function dossierLines(dossier: Dossier, who: string): Line[] {
  const { mirror, asOf, answers, missing, audit, requests, crm, platform, doNotContact } = dossier;
  const when = asOf === null ? '' : `, as of ${asOf}`;
  const unread = (name: string): string[] => [`  ${name.padEnd(20)} not read`];
  const count = (name: string, n: number | undefined, word: string): string[] =>
    n === undefined ? [] : [`  ${name.padEnd(20)} ${counted(n, word, manyOf(word))}`];
  return [
    styled('bold', `Dossier of ${who} in ${mirror}${when}`),
    headOf(dossier),
    '',
    ...answers.map(({ sentence }) => sentence),
    ...(answers.length > 0 ? [''] : []),
    ...(crm?.read === false ? unread('CRM') : count('CRM', crm?.records.length, 'record')),
    ...(platform?.read === false
      ? unread('platform')
      : count('platform', platform?.contacts.length, 'contact')),
    ...count('do-not-contact list', doNotContact.length, 'entry'),
    ...count('audit log', audit?.entries.length, 'entry'),
    ...count('requests', requests.length, 'request'),
    ...missing.map(({ part, ...problem }) =>
      lineOf('  ', styled('red', `${part} is missing`), `: ${renderProblem(problem)}`),
    ),
    ...(audit?.altered ? [lineOf('  ', styled('red', audit.altered))] : []),
    '',
    '--output FILE.html writes all of it as a signed page, --output FILE.json as a document.',
  ];
}

function manyOf(word: string): string {
  return word === 'entry' ? 'entries' : `${word}s`;
}
