/**
 * Checks the rules that must hold for every person after every run. It uses only the platform's own
 * log and the export, so that it cannot share a mistake with the run.
 */
import type { Emulator } from '../../emulator/emulator.ts';
import type { LoggedRequest } from '../../emulator/ui/emulated-world.ts';
import type { DesiredRow } from '../../domain/record.ts';
import { counted } from '../../domain/values/counted.ts';
import type { Passed } from './demo-run.ts';
import { wishesOf } from './demo-platform.ts';
import { type ClaimResult, writesIn } from './expected-outcome.ts';

interface Before {
  /** `<email> <channel>` for each person who unsubscribed from the channel or from all mail. */
  left: ReadonlySet<string>;
  /** The people who are not in the CRM, as JSON. */
  foreign: string;
}

/** Records the state for the safety check. It must be called before a run. */
export function lookBefore(emulator: Emulator, foreign: readonly string[]): Before {
  const { world } = emulator;
  const written = writesIn({ requests: world.requests() });
  const optOuts = written.filter(({ subscription }) => subscription === 'opt_out');
  const ours = new Set(optOuts.map(pairOf));
  const left = world.contacts().flatMap(({ email, status, channels }) => {
    const pairs = (list: readonly { id: string }[]): string[] =>
      list.map(({ id }) => pairOf({ email, channelId: id }));
    if (status !== 'subscribed') return pairs(world.channels());
    const out = channels.filter(({ subscription }) => subscription === 'opt_out');
    return pairs(out).filter((pair) => !ours.has(pair));
  });
  return { left: new Set(left), foreign: standing(emulator, foreign) };
}

/**
 * Checks after a run that nobody was opted in against their will, and that people who are not in
 * the CRM were not touched.
 */
export function tellSafety({
  emulator,
  before,
  foreign,
  people,
  passed,
}: {
  emulator: Emulator;
  before: Before;
  foreign: readonly string[];
  people: readonly DesiredRow[];
  passed: Passed;
}): ClaimResult[] {
  const optIns = writesIn(passed).filter(({ subscription }) => subscription === 'opt_in');
  const back = optIns.filter((request) => before.left.has(pairOf(request)));
  const unwanted = optIns.filter((request) => !isWanted(request, people));
  const rest = {
    subject: `${foreign.length} people the CRM has never heard of`,
    says: 'Untouched, each of them.',
    truth: standing(emulator, foreign) === before.foreign ? undefined : 'some were changed',
  };
  if (optIns.length === 0) return [rest];
  return [
    {
      subject: `${before.left.size} subscriptions that people had ended on the platform`,
      says: `Not one was opened again; ${optIns.length} opt-ins were sent, none of them to these.`,
      truth: back.length === 0 ? undefined : `opened again: ${back.map(pairOf).join(', ')}`,
    },
    {
      subject: counted(optIns.length, 'opt-in'),
      says: 'The CRM states every one of them, and nothing in it contradicts.',
      truth: unwanted.length === 0 ? undefined : `not wanted: ${unwanted.map(pairOf).join(', ')}`,
    },
    rest,
  ];
}

function isWanted(
  { email, channelId = '' }: LoggedRequest,
  people: readonly DesiredRow[],
): boolean {
  const rows = people.filter(({ key }) => key === email);
  const wishes = rows.map((row) => wishesOf(row)[channelId]);
  const valid = rows.every(({ invalid }) => invalid === undefined);
  return valid && wishes.includes('opt_in') && !wishes.includes('opt_out');
}

function pairOf({ email, channelId }: Pick<LoggedRequest, 'email' | 'channelId'>): string {
  return `${email} ${channelId}`;
}

function standing({ world }: Emulator, addresses: readonly string[]): string {
  return JSON.stringify(addresses.map((address) => world.contact(address)));
}
