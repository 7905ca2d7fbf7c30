/** Formats recorded rows for people: as rows of a table, and as lines of a CSV file. */
import { csvLines } from '../../compose/output/csv-text.ts';
import { memberWords } from '../lookup/person-text.ts';
import type { RecordedEntry } from './recorded-entry.ts';

const ownershipWords = { created: 'created by us', adopted: 'adopted', noted: 'not ours' };

/** Returns the head of the table, and a row for each entry. */
export function tableRows(entries: readonly RecordedEntry[]): string[][] {
  return [
    ['RECORD', 'OWNERSHIP', 'STATE', 'LAST SEEN'],
    ...entries.map((entry) => [
      entry.kind === 'template' ? `template ${entry.key}` : entry.key,
      ownershipWords[entry.ownership],
      stateWords(entry),
      entry.seenAt ?? '–',
    ]),
  ];
}

/** Formats the state, such as: ch_news opt in, ch_product opt out by us */
function stateWords({ id, name, channels, allMail }: RecordedEntry): string {
  const words = [
    ...(id === null ? ['vanished from the platform'] : []),
    ...(name === null ? [] : [`named ${JSON.stringify(name)}`]),
    ...(allMail ? [`opted out of all mail (${allMail.causes.join(', ') || 'cause unknown'})`] : []),
    ...Object.entries(channels).map(
      ([channel, is]) => `${channel} ${memberWords({ ...is, after: null, until: null })}`,
    ),
  ];
  return words.join(', ') || 'nothing is recorded of a channel';
}

const columns = [
  'kind',
  'key',
  'ownership',
  'id',
  'crm_ids',
  'channel',
  'is',
  'by',
  'cause',
  'after',
  'until',
  'doubtful',
  'all_mail',
  'seen_at',
];

/** The first line of the CSV. */
export const csvHead = columns.join(',');

/** Returns the CSV lines of an entry: one for each channel, or one if none is recorded. */
export function csvOf(entry: RecordedEntry): string[] {
  const { kind, key, ownership, id, crmIds, channels, allMail, seenAt } = entry;
  const first = [kind, key, ownership, id ?? '', crmIds.join(' ')];
  const last = [allMail ? allMail.causes.join(' ') || 'unknown' : '', seenAt ?? ''];
  const parts = Object.entries(channels).map(([channel, is]) => {
    const { by, cause, after, until, doubtful } = is;
    const who = [channel, is.is, by ?? '', cause ?? ''];
    return [...who, after ?? '', until ?? '', doubtful ? 'yes' : 'no'];
  });
  const rows = parts.length > 0 ? parts : [Array.from({ length: 7 }, () => '')];
  return csvLines(
    rows.map((row) => [...first, ...row, ...last]),
    { spreadsheet: true },
  );
}
