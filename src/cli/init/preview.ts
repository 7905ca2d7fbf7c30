/** Shows what the first people of an export would be under the proposed configuration. */
import { systemClock } from '../../http/system-clock.ts';
import { contactDesire } from '../../records/contact/observe/desired-contact.ts';
import { decodeContact } from '../../records/contact/observe/contact-rows.ts';
import { visibleLine } from '../output/visible-text.ts';
import { anyOr, type Chosen, type Proposal } from './propose-columns.ts';
import type { Sample } from './read-sample.ts';

const said = { opt_in: 'in', opt_out: 'out' } as const;

/** Returns a table of at most twenty people: each channel, or why the record is not used. */
export function previewOf({ first }: Sample, proposal: Proposal, asTheyAre: boolean): string[] {
  const { id, email, unsubscribed, deleted, channels } = proposal;
  const desire = contactDesire(
    {
      id: id.column.name,
      email: email.column.name,
      unsubscribed: unsubscribed && flagOf(unsubscribed),
      deleted: deleted && flagOf(deleted),
      channels: channels.map((one) => ({ id: one.id, subscription: subscriptionOf(one) })),
    },
    systemClock.now,
  );
  const rows = first.map(({ where, value }) => {
    const row = desire(value, where);
    const { channels: wishes, presence } = decodeContact.desired(row).value;
    const who = asTheyAre ? (row.key ?? row.alias ?? '') : where;
    const each = channels.map((one) => {
      const wish = wishes[one.id];
      return wish ? said[wish] : '–';
    });
    const isSkipped = row.invalid?.noAddress === true;
    const why = isSkipped ? 'skipped: no address' : row.invalid && `invalid: ${row.invalid.reason}`;
    const note = why ?? (presence === 'flagged' ? 'gone: the CRM says so' : '');
    return [who, ...each, note];
  });
  return table([['', ...channels.map((one) => one.id), ''], ...rows]);
}

/** Options that are undefined would count as stated, so each form has its own words only. */
function flagOf({ column, words }: Chosen) {
  return { field: column.name, yes: anyOr(words.yes), no: words.no };
}

function subscriptionOf({ column, words }: Chosen) {
  return { field: column.name, in: words.in, out: words.out, none: words.none };
}

function table(rows: readonly (readonly string[])[]): string[] {
  const texts = rows.map((row) => row.map((text) => visibleLine(text)));
  const widths = (texts[0] ?? []).map((_, at) =>
    Math.max(...texts.map((row) => row[at]?.length ?? 0)),
  );
  return texts.map((row) =>
    `  ${row.map((text, at) => text.padEnd(widths[at] ?? 0)).join('  ')}`.trimEnd(),
  );
}
