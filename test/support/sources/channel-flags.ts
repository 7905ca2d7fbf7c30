/** Whether contacts.deleted takes a value for "yes". */
import { contactDesire } from '../../../src/records/contact/observe/desired-contact.ts';

const desire = contactDesire({ id: 'id', email: 'email', deleted: 'gone', channels: [] }, Date.now);

export function truthyIn(gone: unknown): boolean {
  return desire({ id: '1', email: 'ann@example.com', gone }, 'row 1').presence === 'flagged';
}
