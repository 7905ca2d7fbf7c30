/** Shows what the first people of a source would be under the proposed configuration. */
import { isPlain } from '../../domain/unknown-words.ts';
import { fieldAt, textOf, wordOf } from '../../domain/values/record-field.ts';
import { systemClock } from '../../http/system-clock.ts';
import { contactDesire } from '../../records/contact/observe/desired-contact.ts';
import { decodeContact } from '../../records/contact/observe/contact-state.ts';
import { vocabulary } from '../../records/contact/values/value-vocabulary.ts';
import { table } from '../../compose/output/table.ts';
import type { Chosen } from './column-words.ts';
import { statementOf, subscriptionOf } from './mirror-file.ts';
import type { Proposal } from './propose-columns.ts';
import type { Sample } from './sample/sample.ts';

const said = { opt_in: 'in', opt_out: 'out' } as const;

/** How the preview is shown. */
interface Showing {
  /** Whether addresses and values may be shown as they are. */
  asTheyAre: boolean;
  /** The width of the terminal: a long address is cut so that its channels remain. */
  width?: number;
}

/**
 * Returns a heading and a table of at most twenty people: each channel with the value that decides
 * it, or why the record is not used.
 */
export function previewOf(
  { first }: Sample,
  proposal: Proposal,
  { asTheyAre, width = Number.POSITIVE_INFINITY }: Showing,
): string[] {
  const { id, email, unsubscribed, deleted, channels } = proposal;
  const desire = contactDesire(
    {
      id: id.column.name,
      email: email.column.name,
      unsubscribed: unsubscribed.map(statementOf),
      deleted: deleted && statementOf(deleted),
      channels: channels.map((one) => ({ id: one.id, subscription: subscriptionOf(one) })),
    },
    systemClock.now,
  );
  const optOuts = unsubscribed.map((chosen) => ({ chosen, read: readerOf(chosen) }));
  const rows = first.map(({ where, value }) => {
    const row = desire(value, where);
    const { channels: wishes, presence } = decodeContact.desired(row).value;
    const who = asTheyAre ? (row.key ?? row.alias ?? '') : where;
    const because = (chosen: Chosen | undefined): string => {
      const text = chosen && valueIn(value, chosen, asTheyAre);
      return text === undefined ? '' : ` (${text})`;
    };
    const out = optOuts.find(({ read }) => read(value) === 'yes')?.chosen;
    const noMail = out !== undefined;
    const each = channels.map((one) => {
      const wish = wishes[one.id];
      return `${wish ? said[wish] : '–'}${noMail || row.invalid ? '' : because(one)}`;
    });
    const notes = [
      row.invalid?.noAddress === true ? 'skipped: no address' : '',
      row.invalid && row.invalid.noAddress !== true ? `invalid: ${row.invalid.reason}` : '',
      presence === 'flagged' ? `gone: ${deleted?.column.name ?? ''}${because(deleted)}` : '',
      noMail ? `no mail: ${out.column.name}${because(out)}` : '',
    ];
    return [who, ...each, notes.filter((note) => note !== '').join('; ')];
  });
  const all = [['', ...channels.map((one) => one.id), ''], ...rows];
  const rest = table(all.map(([_, ...cells]) => cells.slice(0, -1)));
  const room = Math.max(width - 4 - Math.max(...rest.map(({ length }) => length)), leastShown);
  for (const row of all) row[0] = cut(row[0] ?? '', room);
  return [
    `The first ${first.length} people (– = no opinion: neither subscribed nor unsubscribed):`,
    ...table(all, { indent: 2 }),
  ];
}

const leastShown = 8;

/** Cuts a text to a width. */
export function cut(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, width - 1)}…` : text;
}

function readerOf(chosen: Chosen) {
  const { yes, no } = chosen.words;
  const read = vocabulary('unsubscribed', { yes, no }, systemClock.now);
  return (record: unknown) => read(fieldAt(record, chosen.column.name));
}

/** Returns the value of a column, unless it is empty or may be personal data. */
function valueIn(record: unknown, { column }: Chosen, asTheyAre: boolean): string | undefined {
  const text = textOf(fieldAt(record, column.name));
  if (text === undefined || text === '') return undefined;
  const records = column.values.find((one) => wordOf(one.text) === wordOf(text))?.records ?? 0;
  return asTheyAre || isPlain({ text, records }) ? text : undefined;
}
