/** Offers every change that awaits a decision as CSV. */
import { guardRows } from '../../../domain/guard-classes.ts';
import { csvLines } from '../../../compose/output/csv-text.ts';
import { channelName } from '../../view/channel-name.ts';
import { html, type Page } from '../../view/page.ts';
import { tellChanges } from './change-list.ts';

const head = ['cause', 'change', 'channel', 'channel_id', 'who', 'crm_ids', 'why'] as const;

/** A line for each change of a plan that waits; users who see hashes get hashes. */
export const approvalsFile: Page = {
  path: 'approvals.csv',
  show: async (request) =>
    request.mirror.read(request.user, ({ snapshot, names }) => {
      const plan = request.query['plan'] ?? '';
      if (!snapshot?.awaitingApproval.get(plan)) {
        const body = html`<p>Nothing awaits a decision there any more.</p>`;
        return { title: 'Nothing waits', code: 404, body };
      }
      const tell = tellChanges(snapshot, names);
      const rows = snapshot.awaitingApproval.waiting(plan).map((change) => {
        const { change: what, part, who, crmIds, why } = tell(change);
        const cause = guardRows[change.guard].words.heading;
        const channel = part === '' ? '' : channelName(request, part);
        return [cause, what, channel, part, who, crmIds.join(' '), why];
      });
      const lines = csvLines([head, ...rows], { spreadsheet: true });
      return { type: 'text/csv', text: `${lines.join('\r\n')}\r\n`, name: 'approvals.csv' };
    }),
};
