/**
 * Compares the claims of the demo about a person or a template with the requests that the platform
 * received and with its present state.
 */
import type { World } from '../../emulator/ui/emulated-world.ts';
import { contactKey } from '../../domain/values/contact-key.ts';
import type { DesiredRow, Key } from '../../domain/record.ts';
import type { Passed } from './demo-run.ts';
import type { Claim, TemplateClaim } from './sample-people.ts';

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
