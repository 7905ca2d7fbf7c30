/**
 * Provides the demo's platform on a real socket, with people who already exist before the first
 * run.
 */
import type { Config } from '../../config/config.ts';
import { loadConfig } from '../../config/load-config.ts';
import { createEmulator, type Emulator } from '../../emulator/emulator.ts';
import { seeded } from '../../emulator/shared/seeded-random.ts';
import { serve } from '../../emulator/http-listener.ts';
import type { DesiredRow } from '../../domain/record.ts';
import type { Shell } from '../../compose/process-shell.ts';
import { systemClock } from '../../http/system-clock.ts';
import { alreadyThere, isNamed, templateThere } from './sample-people.ts';
import type { Folder } from './demo-folder.ts';
import { contactDesire } from '../../records/contact/observe/desired-contact.ts';
import { decodeContact } from '../../records/contact/observe/contact-state.ts';
import type { Subscription } from '../../platform/request-schemas.ts';
import { loadSources } from '../../compose/source-registry.ts';

/** Slow enough to show the rate limit at work, fast enough to keep the wait short. */
export const enrolmentsPerSecond = 100;
/** The proportion of people from the export who are also on the platform: one in this many. */
const everySo = 7;
const strangers = 40;
const day = 86_400_000;

export interface Stage {
  emulator: Emulator;
  url: string;
  config: Config;
  foreign: readonly string[];
  close(): Promise<void>;
}

/** Starts the platform and adds people to it. The caller closes it. */
export async function openStage(folder: Folder, shell: Shell): Promise<Stage> {
  const emulator = createEmulator({
    clock: systemClock,
    random: seeded(1),
    channels: [
      { id: 'ch_news', name: 'Newsletter' },
      { id: 'ch_product', name: 'Product updates' },
    ],
    limits: [`contacts.enrol=${enrolmentsPerSecond}/1`, '*=120/10'],
  });
  const { url, close } = await serve(emulator, 0);
  try {
    const env = { ...shell.env, PLATFORM_URL: url, PLATFORM_API_KEY: emulator.apiKey };
    const config = loadConfig(folder.config, env);
    const people = await readPeople(config, shell.stop);
    const now = systemClock.now();
    const guests = Array.from({ length: strangers }, (_, at) => guest(at));
    const rows = new Map(people.map((row) => [row.key ?? '', row]));
    const others = [...rows].filter(([key, row]) => !row.invalid && !isNamed(key));
    const all: NewPerson[] = [
      ...others
        .filter((_, at) => at % everySo === 0)
        .map(([email, row], at) => ({ email, ...standing(row, at % 10) })),
      ...alreadyThere,
      ...guests,
    ];
    for (const [at, person] of all.entries()) {
      emulator.seed.contact({ ...person, createdAt: now - (all.length - at) * day });
    }
    emulator.seed.template({ ...templateThere, createdAt: now - 100 * day });
    const foreign = guests.map(({ email }) => email);
    return { emulator, url, config, foreign, close };
  } catch (error) {
    await close();
    throw error;
  }
}

type NewPerson = Parameters<Emulator['seed']['contact']>[0];

function guest(at: number): NewPerson {
  const email = `guest-${String(at + 1).padStart(2, '0')}@visitors.example.net`;
  const status = at % 10 === 9 ? 'unsubscribed' : 'subscribed';
  return { email, status, channels: at % 4 === 0 ? {} : { ch_news: 'opt_in' } };
}

function standing(row: DesiredRow, tenth: number): Omit<NewPerson, 'email'> {
  const both = { ch_news: 'opt_in', ch_product: 'opt_in' } as const;
  if (tenth === 9) return { status: 'unsubscribed', channels: both };
  if (tenth === 8) return { channels: { ...both, ch_news: 'opt_out' } };
  if (tenth === 7) return {};
  if (tenth === 6) return { channels: both };
  const stated = Object.entries(wishesOf(row)).flatMap(([id, wish]) =>
    wish ? [{ id, wish }] : [],
  );
  return { channels: Object.fromEntries(stated.map(({ id, wish }) => [id, wish])) };
}

/** Reads the people of the export in the same way as a run. */
export async function readPeople(
  config: Config,
  signal: AbortSignal,
): Promise<readonly DesiredRow[]> {
  const { contacts } = config;
  const source = (await loadSources(config)).contacts?.();
  if (!contacts || !source) throw new Error('the example configuration has no contacts');
  const desire = contactDesire(contacts, systemClock.now);
  const rows: DesiredRow[] = [];
  for await (const batch of source.read({ fields: [contacts.id, contacts.email], signal })) {
    for (const record of batch) {
      if ('value' in record) rows.push(desire(record.value, record.where));
    }
  }
  return rows;
}

export function wishesOf(row: DesiredRow): Record<string, Subscription | null> {
  return decodeContact.desired(row).value.channels;
}
