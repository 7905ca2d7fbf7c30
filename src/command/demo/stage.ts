/** The demo's platform, over a real socket, with people already there before the first run. */
import { loadConfig } from '../../config/load.ts';
import type { Config } from '../../config/config.ts';
import { createEmulator, type Emulator } from '../../emulator/emulator.ts';
import { seeded } from '../../emulator/random.ts';
import { serve } from '../../emulator/serve.ts';
import { desireContact } from '../../kind/contact/desire.ts';
import { desiredBody } from '../../kind/contact/record.ts';
import type { DesiredRow, Key } from '../../model/record.ts';
import type { Subscription } from '../../platform/request.ts';
import { csvSource } from '../../source/csv/csv.ts';
import type { Shell } from '../shell.ts';
import { systemClock } from '../time.ts';
import { alreadyThere, templateThere } from './cast.ts';
import type { Folder } from './folder.ts';

/** So slow that one sees the budget at work, so fast that nobody waits long. */
export const perSecond = 150;
const strangers = 40;
const everySo = 7;
const day = 86_400_000;

export interface Stage {
  emulator: Emulator;
  url: string;
  config: Config;
  /** Addresses of people the CRM has never heard of. */
  foreign: string[];
  close(): Promise<void>;
}

export async function openStage(folder: Folder, shell: Shell): Promise<Stage> {
  const emulator = createEmulator({
    clock: systemClock,
    random: seeded(1),
    channels: [
      { id: 'ch_news', name: 'Newsletter' },
      { id: 'ch_product', name: 'Product updates' },
    ],
    limits: [`contacts.enrol=${perSecond}/1`, '*=120/10'],
  });
  const { url, close } = await serve(emulator, 0);
  try {
    const env = { ...shell.env, PLATFORM_URL: url, PLATFORM_API_KEY: emulator.apiKey };
    const config = loadConfig(folder.config, env);
    const people = await readPeople(config, shell.stop);
    for (const person of [...alreadyThere, ...crowd(people)]) emulator.seed.contact(person);
    emulator.seed.template(templateThere);
    return { emulator, url, config, foreign: settleForeign(emulator), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The records of the export, as a run understands them. */
export async function readPeople(
  { contacts }: Config,
  signal: AbortSignal,
): Promise<readonly DesiredRow[]> {
  if (!contacts) throw new Error('the example configuration has no contacts');
  const source = csvSource(contacts.source, { clock: systemClock });
  const fields = [contacts.id, contacts.email];
  const rows: DesiredRow[] = [];
  for await (const batch of source.read({ fields, signal })) {
    for (const record of batch) {
      if ('value' in record) rows.push(desireContact(contacts, record.value, record.where));
    }
  }
  return rows;
}

export type Wishes = Record<string, Subscription | null>;

/** What one record says of each channel. */
export function wishesOf({ body }: Pick<DesiredRow, 'body'>): Wishes {
  return desiredBody.parse(JSON.parse(body)).channels;
}

/** Every so many-th person of the export is on the platform too, and not always as the CRM says. */
function crowd(people: readonly DesiredRow[]) {
  const known = new Set<Key>(alreadyThere.map(({ email }) => email));
  const valid = people.flatMap((row) => (row.key === undefined ? [] : [{ ...row, key: row.key }]));
  return valid
    .filter(({ alias }) => !alias.includes('@example') || !named.has(alias))
    .filter((_, at) => at % everySo === 3)
    .filter(({ key }) => !known.has(key) && known.add(key))
    .map((row, at) => ({ email: row.key, createdAt: daysAgo(at % 300), ...standing(row, at) }));
}
