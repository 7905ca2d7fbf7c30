/**
 * Who has another address in the CRM by now is opted out under the old one, once the new one
 * stands. Per channel, of the new address:
 *
 *   the CRM wants    recorded                  →
 *   out              any                       opt_out: what she says now holds for the old one too
 *   in               in, or out by platform    opt_out
 *   in               anything else             nothing yet: it is to be opted in first
 *   no opinion       there                     opt_out
 *   no opinion       not there                 nothing yet
 *   gone             any                       nothing: she has left the CRM
 */
import type { States } from '../kind.ts';
import { recordedBody } from './record.ts';
import { strictest, type Wish } from './strictest.ts';

/** Whether the contact of this address is to be opted out of the channel for that. */
export function hasMoved({ successors }: States, channel: string): boolean {
  if (successors.length === 0) return false;
  const wishes = successors.map((next) => strictest(next.desired, [channel]).get(channel) ?? null);
  if (wishes.includes('opt_out')) return true;
  return successors.every((next, at) => stands(next, channel, wishes[at] ?? null));
}

function stands(
  { desired, recorded }: States['successors'][number],
  channel: string,
  wish: Wish,
): boolean {
  if (wish === 'gone' || recorded?.id === undefined) return false;
  if (wish === null) return !desired.some(({ invalid }) => invalid);
  const is = recordedBody.parse(JSON.parse(recorded.body)).channels[channel];
  return is?.is === 'opt_in' || is?.by === 'platform';
}
