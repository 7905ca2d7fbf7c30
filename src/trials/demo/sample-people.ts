/**
 * Defines the named people and templates of the demo: their state on the platform before the first
 * run, and the claims about them after each act. They are part of the sample export (config/demo).
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Emulator } from '../../emulator/emulator.ts';
import { type Folder, writePeople } from './demo-folder.ts';

/** A claim about what one run should do for one person, stated before the run. */
export interface Claim {
  who: string;
  says: string;
  /** The requests that changed something, such as `opt_in ch_news`. */
  sent: readonly string[];
  /** The contact's state on the platform, in the format of `standingOf`. */
  shows: string;
  /** The class of the problem that the run lists for the person; undefined if there is none. */
  listed?: 'conflict' | 'invalid';
}

export interface TemplateClaim {
  name: string;
  says: string;
  sent: readonly ('create' | 'update')[];
  subject: string;
}

const news = 'ch_news';
const product = 'ch_product';
const isIn = (...ids: string[]) => Object.fromEntries(ids.map((id) => [id, 'opt_in' as const]));

/** The named people who are on the platform before the first run. */
export const alreadyThere = [
  { email: 'george.hall@example.org', firstName: 'George', channels: isIn(news) },
  { email: 'marta.kowalska@example.com', channels: { [news]: 'opt_out' as const } },
  {
    email: 'peter.novak@example.net',
    status: 'unsubscribed' as const,
    channels: isIn(news, product),
  },
  { email: 'helen.meyer@example.com', firstName: 'Helen', channels: isIn(news) },
  { email: 'lucas.martin@example.com', firstName: 'Lucas', channels: isIn(news) },
  { email: 'noor.haddad@example.org', firstName: 'Noor', channels: isIn(news, product) },
  { email: 'emil.jensen@example.com', firstName: 'Emil', channels: isIn(news) },
];

export const templateThere = {
  name: 'welcome',
  subject: 'Hello and welcome',
  content: [{ type: 'text', text: 'Written on the platform, long before there was a mirror.' }],
  status: 'published' as const,
};

const peopleOfActOne: readonly Claim[] = [
  {
    who: 'ida.lindqvist@example.com',
    says: 'Only in the CRM, and wants both channels: created in the first, opted in to the second.',
    sent: [`opt_in ${news}`, `opt_in ${product}`],
    shows: 'ch_news in, ch_product in',
  },
  {
    who: 'george.hall@example.org',
    says: 'Was there already, just as the CRM says: adopted, without a single request.',
    sent: [],
    shows: 'ch_news in',
  },
  {
    who: 'marta.kowalska@example.com',
    says:
      'The CRM says yes, but this person left the newsletter on the platform and is not opted in ' +
      'again: a conflict is listed, so that somebody records the opt-out in the CRM.',
    sent: [],
    shows: 'ch_news out',
    listed: 'conflict',
  },
  {
    who: 'peter.novak@example.net',
    says: 'The CRM says yes, but this person unsubscribed from all mail. Nothing is sent: a conflict.',
    sent: [],
    shows: 'unsubscribed, ch_news in, ch_product in',
    listed: 'conflict',
  },
  {
    who: 'helen.meyer@example.com',
    says:
      'Two records in the CRM: one says yes to the newsletter, the other no. The strictest wins: ' +
      'opted out, and the contradiction is listed. Both say yes to product updates: opted in.',
    sent: [`opt_out ${news}`, `opt_in ${product}`],
    shows: 'ch_news out, ch_product in',
    listed: 'conflict',
  },
  {
    who: 'lucas.martin@example.com',
    says:
      'The CRM writes " Lucas.Martin@Example.COM". That is the same person, so the contact was ' +
      'adopted, and none was created.',
    sent: [],
    shows: 'ch_news in',
  },
  {
    who: 'noor.haddad@example.org',
    says: 'The CRM says "unsubscribed from all email": opted out of every channel.',
    sent: [`opt_out ${news}`, `opt_out ${product}`],
    shows: 'ch_news out, ch_product out',
  },
  {
    who: 'emil.jensen@example.com',
    says: 'The CRM says no to the newsletter, but the contact was still subscribed: opted out.',
    sent: [`opt_out ${news}`],
    shows: 'ch_news out',
  },
  {
    who: 'tom.baker(at)example.com',
    says: 'That is no address: listed as invalid. Nothing is guessed.',
    sent: [],
    shows: 'not on the platform',
    listed: 'invalid',
  },
  {
    who: 'sofia.rossi@example.org',
    says:
      'The consent reads "maybe": listed as invalid. Until it is corrected, this person is opted in ' +
      'to nothing, product updates included.',
    sent: [],
    shows: 'not on the platform',
    listed: 'invalid',
  },
];

const peopleOfActTwo: readonly Claim[] = [
  {
    who: 'clara.fischer@example.com',
    says:
      'Left the newsletter on the platform; the CRM still says yes. The person is not opted in again, ' +
      'and a conflict is listed.',
    sent: [],
    shows: 'ch_news out, ch_product in',
    listed: 'conflict',
  },
  {
    who: 'david.cohen@example.org',
    says: 'Unsubscribed from all mail; the CRM still says yes. Left alone: a conflict.',
    sent: [],
    shows: 'unsubscribed, ch_news in, ch_product in',
    listed: 'conflict',
  },
  {
    who: 'yuki.tanaka@example.net',
    says: 'Deleted on the platform. Nobody is brought back silently (missing: respect): a conflict.',
    sent: [],
    shows: 'not on the platform',
    listed: 'conflict',
  },
  {
    who: 'anna.berg@example.org',
    says: 'Changed to no in the CRM: opted out.',
    sent: [`opt_out ${news}`],
    shows: 'ch_news out',
  },
  {
    who: 'emil.jensen@example.com',
    says:
      "Changed to yes in the CRM. The opt-out was the CRM's own, sent in act 1, so the CRM may " +
      'take it back: opted in.',
    sent: [`opt_in ${news}`],
    shows: 'ch_news in',
  },
  {
    who: 'zoe.laurent@example.com',
    says: 'New in the CRM: created.',
    sent: [`opt_in ${news}`],
    shows: 'ch_news in',
  },
  ...['oscar.silva@example.com', 'rita.gomez@example.com', 'karl.weber@example.org'].map((who) => ({
    who,
    says: 'No longer in the export. A missing row may be a failed export: nothing is done before two of them, 20 h apart.',
    sent: [],
    shows: 'ch_news in',
  })),
];

export interface Claims {
  people: readonly Claim[];
  templates: readonly TemplateClaim[];
}

export const claims: Record<'one' | 'two', Claims> = {
  one: {
    people: peopleOfActOne,
    templates: [
      {
        name: 'welcome',
        says:
          'The platform has one of this name with other content. It is adopted and left as it is, ' +
          'until the source changes or the policy says overwrite: a conflict.',
        sent: [],
        subject: 'Hello and welcome',
      },
      {
        name: 'Monthly newsletter',
        says: 'Not there yet: created, and completed with what only an update can set.',
        sent: ['create', 'update'],
        subject: 'News in {{month}}, {{firstName}}',
      },
    ],
  },
  two: {
    people: peopleOfActTwo,
    templates: [
      {
        name: 'Monthly newsletter',
        says: 'Edited by hand on the platform. The edit is not overwritten: a conflict.',
        sent: [],
        subject: 'Big news, {{firstName}}!',
      },
      {
        name: 'invoice',
        says: 'Changed in the source: updated.',
        sent: ['update'],
        subject: 'Invoice {{invoiceNumber}} for {{firstName}}',
      },
    ],
  },
};

const named = new Set([
  ...alreadyThere.map(({ email }) => email),
  ...[...peopleOfActOne, ...peopleOfActTwo].map(({ who }) => who),
]);

export function isNamed(key: string): boolean {
  return named.has(key);
}

/** Simulates changes that people and colleagues make on the platform. */
export function changePlatform({ dashboard, world }: Emulator): void {
  dashboard.leave('clara.fischer@example.com', 'ch_news');
  dashboard.unsubscribe('david.cohen@example.org');
  dashboard.deleteContact('yuki.tanaka@example.net');
  const newsletter = world.templates().find(({ name }) => name === 'Monthly newsletter');
  if (!newsletter) throw new Error('the newsletter is not on the platform');
  dashboard.editTemplate(newsletter.id, { subject: 'Big news, {{firstName}}!' });
}

export function changeCrm(folder: Folder): void {
  const [header = '', ...rows] = readFileSync(folder.people, 'utf8').split('\n');
  const columns = header.split(',');
  const consentAt = columns.indexOf('Newsletter consent');
  const withConsent = (row: string, consent: string): string =>
    row.split(',').with(consentAt, consent).join(',');

  for (const who of ['oscar.silva@example.com', 'rita.gomez@example.com', 'karl.weber@example.org'])
    rows.splice(rowOf(rows, who), 1);
  for (const [who, consent] of [
    ['anna.berg@example.org', 'No'],
    ['emil.jensen@example.com', 'Yes'],
  ] as const) {
    const at = rowOf(rows, who);
    rows[at] = withConsent(rows[at] ?? '', consent);
  }
  const newcomer = columns.with(0, '20999000111').with(3, 'zoe.laurent@example.com');
  const blank = newcomer.map((cell) => (columns.includes(cell) ? '' : cell));
  rows.unshift(withConsent(blank.join(','), 'Yes'));
  writePeople(folder, [header, ...rows].join('\n'));

  const invoice = join(folder.templates, 'invoice.yaml');
  const subject = 'subject: Invoice {{invoiceNumber}} for {{firstName}}';
  writeFileSync(invoice, readFileSync(invoice, 'utf8').replace(/^subject: .*$/m, subject));
}

/** Returns the index of a named person's row, which is a single line without quotes. */
function rowOf(rows: readonly string[], email: string): number {
  const at = rows.findIndex((row) => row.includes(`,${email},`) && !row.includes('"'));
  if (at >= 0) return at;
  throw new Error(`${email} is not in the sample export`);
}
