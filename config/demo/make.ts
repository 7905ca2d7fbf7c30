/**
 * Makes people.csv, the sample of a CRM's contact export: `node config/demo/make.ts`. Everybody in
 * it is invented, every address lies in a reserved domain, and every run writes the same bytes.
 *
 * It has the quirks that real exports have: a byte order mark, quoted commas and line breaks, one
 * address in several spellings, people with two records that contradict each other, addresses that
 * are none, and consents in several spellings, empty, or unreadable.
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const columns = [
  'Record ID',
  'First Name',
  'Last Name',
  'Email',
  'Lifecycle Stage',
  'Contact owner',
  'Country/Region',
  'Unsubscribed from all email',
  'Newsletter consent',
  'Product updates consent',
  'Create Date',
  'Last Modified Date',
  'Notes',
] as const;

type Row = Record<(typeof columns)[number], string>;

const given = words(`
  Adam Aisha Alice Amir Ana Andrés Anna Astrid Ben Bianca Carlos Carmen Chen Chloé Claire Daniel
  Diego Elena Elif Emma Erik Eva Fatima Felix Finn Gabriel Grace Hana Hugo Ines Isabel Ivan Jakub
  James Jana Jonas Julia Kenji Laura Layla Leo Liam Lina Luca Maja Marco Maria Mateo Mei Mia Nadia
  Nils Noah Olga Omar Paula Priya Rosa Sam Sara Søren Teresa Thomas Uma Victor Wei Yara Zoë`);
const family = words(`
  Ahmed Andersen Bauer Becker Bernard Bianchi Brown Chen Costa Cruz Díaz Dubois Eriksson Evans
  Fernández Ferrari García Garcia Gruber Hansen Hoffmann Horváth Ivanov Jansen Johansson Jones Kaya
  Khan Kim Kowalski Larsen Lefèvre Lopez Martin Meyer Moreau Müller Nagy Nguyen Nielsen Novák
  Okafor Olsen Patel Pereira Petrov Popescu Ricci Romano Santos Sato Schmidt Silva Singh Smith
  Suzuki Taylor Tanaka Torres Virtanen Wagner Walker Weber Wilson Yılmaz`);
const domains = ['example.com', 'example.com', 'example.com', 'example.org', 'example.net'];
const stages = ['Lead', 'Subscriber', 'Customer', 'Customer', 'Opportunity', 'Evangelist'];
const owners = ['Okafor, Grace', 'Lindgren, Tove', 'Marsh, Eleanor', 'No owner'];
const countries = words(
  'Austria Brazil Denmark France Germany India Italy Japan Kenya Poland Spain',
);
const notes = [
  'Met at the fair, asked for the price list',
  'Calls herself "the printer next door", likes examples',
  'Prefers short mails.\nSpeaks French and English.',
  'Address from the guest book\n(second line hard to read)',
];

/** Named people: what the demo tells happens to them. Their rows have no quotes. */
const named: [name: string, email: string, consents: string, unsubscribed?: string][] = [
  ['Ida Lindqvist', 'ida.lindqvist@example.com', 'Yes Yes'],
  ['George Hall', 'george.hall@example.org', 'Yes -'],
  ['Marta Kowalska', 'marta.kowalska@example.com', 'Yes -'],
  ['Peter Novak', 'peter.novak@example.net', 'Yes Yes'],
  ['Helen Meyer', 'helen.meyer@example.com', 'Yes Yes'],
  ['Helen Meyer', 'Helen.Meyer@example.com', 'No Yes'],
  ['Lucas Martin', ' Lucas.Martin@Example.COM', 'TRUE -'],
  ['Noor Haddad', 'noor.haddad@example.org', 'Yes Yes', 'Yes'],
  ['Tom Baker', 'tom.baker(at)example.com', 'Yes Yes'],
  ['Sofia Rossi', 'sofia.rossi@example.org', 'maybe Yes'],
  ['Emil Jensen', 'emil.jensen@example.com', 'No -'],
  ['Anna Berg', 'anna.berg@example.org', 'Yes -'],
  ['Clara Fischer', 'clara.fischer@example.com', 'Yes Yes'],
  ['David Cohen', 'david.cohen@example.org', 'yes yes'],
  ['Yuki Tanaka', 'yuki.tanaka@example.net', 'Yes -'],
  ['Oscar Silva', 'oscar.silva@example.com', 'Yes -'],
  ['Rita Gomez', 'rita.gomez@example.com', 'Yes -'],
  ['Karl Weber', 'karl.weber@example.org', 'Yes -'],
];

const strangers = 1_440;
const twins = 14;
const mistypes = [
  (email: string) => email.replace('@', '(at)'),
  (email: string) => email.replace('@', '@@'),
  (email: string) => email.replace('@', ''),
  (email: string) => email.replace(/\.\w+$/, ''),
  (email: string) => email.replace('@', '@ '),
  () => '',
];

/** The whole file, as text. */
export function makePeople(): string {
  const random = seeded(20_261_120);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const taken = new Map<string, number>();
  const rows = Array.from({ length: strangers }, () => stranger({ random, pick, taken }));
  for (let n = 0; n < twins; n += 1) rows.push(twinOf(rows[n * 100 + 7]!));
  for (let n = 0; n < 11; n += 1) {
    const row = rows[n * 120 + 31]!;
    row.Email = mistypes[n % mistypes.length]!(row.Email);
  }
  rows[500]!['Product updates consent'] = 'ask again';
  for (const person of named)
    rows.splice(Math.floor(random() * rows.length), 0, known(person, pick));
  let id = 20_114_300_000;
  for (const row of rows) row['Record ID'] = String((id += 1 + Math.floor(random() * 900)));
  const lines = [
    columns.join(','),
    ...rows.map((row) => columns.map((name) => cell(row[name])).join(',')),
  ];
  return `\uFEFF${lines.join('\n')}\n`;
}

interface Chance {
  random(): number;
  pick<T>(list: readonly T[]): T;
  /** How often an address was given out. */
  taken: Map<string, number>;
}

function stranger({ random, pick, taken }: Chance): Row {
  const [first, last] = [pick(given), pick(family)];
  const local = `${plain(first)}.${plain(last)}`;
  const address = `${local}@${pick(domains)}`;
  const count = (taken.get(address) ?? 0) + 1;
  taken.set(address, count);
  const email = count === 1 ? address : address.replace('@', `${count}@`);
  return {
    ...dated(pick),
    'First Name': first,
    'Last Name': last,
    Email: spelled(email, random()),
    'Contact owner': pick(owners),
    'Unsubscribed from all email':
      random() < 0.04 ? pick(['Yes', 'TRUE', 'true']) : pick(['', 'No', 'No']),
    'Newsletter consent': consent(random, { yes: 0.55, no: 0.25 }),
    'Product updates consent': consent(random, { yes: 0.4, no: 0.2 }),
    Notes: random() < 0.03 ? pick(notes) : '',
  };
}

/** A second record of the same person, that says the opposite. */
function twinOf(row: Row): Row {
  const opposite = (word: string) => (/^(yes|true)$/i.test(word) ? 'No' : 'Yes');
  return {
    ...row,
    Email: row.Email.trim().toLowerCase(),
    'Newsletter consent': opposite(row['Newsletter consent']),
    Notes: 'Imported from the shop',
  };
}

function known(
  [name, email, consents, unsubscribed = 'No']: (typeof named)[number],
  pick: Chance['pick'],
): Row {
  const [first = '', last = ''] = name.split(' ');
  const [news = '', product = ''] = consents.split(' ').map((word) => (word === '-' ? '' : word));
  return {
    ...dated(pick),
    'First Name': first,
    'Last Name': last,
    Email: email,
    'Contact owner': 'No owner',
    'Unsubscribed from all email': unsubscribed,
    'Newsletter consent': news,
    'Product updates consent': product,
    Notes: '',
  };
}

function dated(pick: Chance['pick']) {
  const two = (n: number): string => String(n).padStart(2, '0');
  const upTo = (n: number): number => pick(Array.from({ length: n }, (_, at) => at + 1));
  const at = (year: number) =>
    `${year}-${two(upTo(12))}-${two(upTo(28))} ${two(upTo(23))}:${two(upTo(59))}`;
  return {
    'Record ID': '',
    'Lifecycle Stage': pick(stages),
    'Country/Region': pick(countries),
    'Create Date': at(2021 + upTo(3)),
    'Last Modified Date': at(2025),
  };
}

function spelled(email: string, chance: number): string {
  if (chance < 0.02) return email.toUpperCase();
  if (chance < 0.04) return ` ${email}`;
  if (chance < 0.06) return `${email} `;
  return chance < 0.1 ? email.replace(/^./, (letter) => letter.toUpperCase()) : email;
}

function consent(random: () => number, { yes, no }: { yes: number; no: number }): string {
  const chance = random();
  const spelling = random();
  if (chance >= yes + no) return '';
  const is = chance < yes;
  if (spelling < 0.15) return is ? 'TRUE' : 'FALSE';
  if (spelling < 0.3) return is ? 'yes' : 'no';
  return is ? 'Yes' : 'No';
}

/** Letters as an address has them. */
function plain(name: string): string {
  const letters = name.replaceAll('ø', 'o').replaceAll('ı', 'i').normalize('NFD');
  return letters.replaceAll(/[^A-Za-z]/g, '').toLowerCase();
}

function cell(text: string): string {
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function words(text: string): string[] {
  return text.trim().split(/\s+/);
}

/** Numbers from 0 to 1, the same for the same seed (xorshift32). */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(new URL('people.csv', import.meta.url), makePeople());
}
