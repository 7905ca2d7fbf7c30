/**
 * Compares the claims of the demo with the requests that the platform received and with its present
 * state.
 */
import type { LoggedRequest, World } from '../../emulator/ui/emulated-world.ts';
import { contactKey } from '../../domain/values/contact-key.ts';
import type { DesiredRow, Key } from '../../domain/record.ts';
import type { Passed } from './demo-run.ts';
import type { Claim, TemplateClaim } from './sample-people.ts';
import type { Emulator } from '../../emulator/emulator.ts';
import { wishesOf } from './demo-platform.ts';
import { counted } from '../../domain/values/counted.ts';

/** A claim and whether it is true. */
export interface ClaimResult {
  subject: string;
  says: string;
  /** The actual outcome; undefined if the claim is true. */
  truth: string | undefined;
}

interface Facts extends Passed {
  world: World;
  people: readonly DesiredRow[];
}

/** Checks a claim about a person. */
export function tellOf({ who, says, ...claim }: Claim, facts: Facts): ClaimResult {
  const key = contactKey(who);
  const sent = writesIn(facts)
    .filter(({ email }) => email === key)
    .map(({ route, subscription, channelId }) => `${subscription ?? route} ${channelId ?? ''}`);
  const row = facts.people.find(({ alias }) => alias === key);
  const name = row && row.key === undefined ? `id ${row.id}` : key;
  // A problem with an unknown word is listed under the field's name.
  const option = facts.people.find((row) => row.key === key)?.invalid?.option;
  const isListed = (as: string) => as === name || as === option;
  const listed = facts.summary.problems.find((problem) => isListed(problem.key))?.class;
  const expected = truthOf(claim);
  const truth = truthOf({ sent, shows: standingOf(facts.world, key), listed });
  return { subject: who, says, truth: truth === expected ? undefined : truth };
}

/** Checks a claim about a template. */
export function tellOfTemplate({ name, says, ...claim }: TemplateClaim, facts: Facts): ClaimResult {
  const here = facts.world.templates().filter((template) => template.name === name);
  const sent = writesIn(facts)
    .filter(({ templateId }) => here.some(({ id }) => id === templateId))
    .map(({ route }) => route?.replace('templates.', ''));
  const text = (requests: readonly unknown[], subjects: string[]): string =>
    `sent: ${requests.join(', ') || 'nothing'}; the subject is "${subjects.join('" and "')}"`;
  const expected = text(claim.sent, [claim.subject]);
  const truth = text(
    sent,
    here.map(({ subject }) => subject),
  );
  return { subject: `template ${name}`, says, truth: truth === expected ? undefined : truth };
}

/** Returns the requests that were meant to change something and did. */
export function writesIn({ requests }: Pick<Passed, 'requests'>): Passed['requests'] {
  return requests.filter(({ method, status }) => method !== 'GET' && status < 300);
}

function truthOf({
  sent,
  shows,
  listed,
}: Omit<Claim, 'who' | 'says' | 'listed'> & {
  listed?: string | undefined;
}): string {
  const requests = [...sent].toSorted().join(', ') || 'nothing';
  return `sent: ${requests}; on the platform: ${shows}; listed as: ${listed ?? 'nothing'}`;
}

/** Returns a person's state on the platform, such as `ch_news in, ch_product out`. */
function standingOf(world: World, key: Key): string {
  const here = world.contacts().filter(({ email }) => contactKey(email) === key);
  if (here.length === 0) return 'not on the platform';
  const one = here.map(({ status, channels }) => {
    const shown = channels.map(
      ({ id, subscription }) => `${id} ${subscription.slice('opt_'.length)}`,
    );
    return [...(status === 'subscribed' ? [] : [status]), ...shown.toSorted()].join(', ');
  });
  return one.join(' and ');
}

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

interface After {
  emulator: Emulator;
  before: Before;
  foreign: readonly string[];
  people: readonly DesiredRow[];
  passed: Passed;
}

/**
 * Checks after a run that nobody was opted in against their will, and that people who are not in
 * the CRM were not touched.
 */
export function tellSafety({ emulator, before, foreign, people, passed }: After): ClaimResult[] {
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
