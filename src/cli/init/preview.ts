/** Shows what the first people of an export would be under the proposed configuration. */
import { systemClock } from '../../http/system-clock.ts';
import { contactDesire } from '../../records/contact/observe/desired-contact.ts';
import { decodeContact } from '../../records/contact/observe/contact-rows.ts';
import { visibleLine } from '../output/visible-text.ts';
import { table } from '../output/table.ts';
import { statementOf } from './mirror-file.ts';
import type { Proposal } from './propose-columns.ts';
import type { Sample } from './read-sample.ts';

const said = { opt_in: 'in', opt_out: 'out' } as const;

/** Returns a table of at most twenty people: each channel, or why the record is not used. */
export function previewOf({ first }: Sample, proposal: Proposal, asTheyAre: boolean): string[] {
  const { id, email, unsubscribed, deleted, channels } = proposal;
  const desire = contactDesire(
    {
      id: id.column.name,
      email: email.column.name,
      unsubscribed: unsubscribed && statementOf(unsubscribed),
      deleted: deleted && statementOf(deleted),
      channels: channels.map((one) => ({ id: one.id, subscription: statementOf(one) })),
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
  const all = [['', ...channels.map((one) => one.id), ''], ...rows];
  return table(all.map((row) => row.map((text) => visibleLine(text)))).map((line) => `  ${line}`);
}
