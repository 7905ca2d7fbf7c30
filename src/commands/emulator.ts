import { readFileSync } from 'node:fs';
import { type Called, type FlagsOf, parseWhole } from '../compose/command-options.ts';
import { createEmulator, type Emulator } from '../emulator/emulator.ts';
import { faultKinds } from '../emulator/faults/faults.ts';
import { algorithms } from '../emulator/limits/route-limits.ts';
import { spellings } from '../emulator/quirks/quirks.ts';
import { seeded } from '../emulator/shared/seeded-random.ts';
import { parseSeedFile, type SeedFile } from '../emulator/seed/seed-file.ts';
import { serve } from '../emulator/http-listener.ts';
import { openFile } from '../emulator/store/sqlite-file.ts';
import { codeOf, Invalid, renderProblem } from '../domain/errors.ts';
import { forecast } from '../engine/report/duration-forecast.ts';
import { subscription } from '../platform/request-schemas.ts';
import { type Shell, stopped } from '../compose/process-shell.ts';
import { exitCode } from '../compose/output/failure-report.ts';
import { lasting } from '../compose/output/format-values.ts';
import { withCommas } from '../domain/values/counted.ts';

const defaultChannels = ['ch_news=Newsletter', 'ch_product=Product updates'];

export const options = {
  'port <n>': { text: 'port to listen on; 0 picks a free one', default: '4010' },
  'limit <route=limit/window...>': 'such as contacts.enrol=30/60 (30 in 60 seconds)',
  'algorithm <name>': 'how limits are counted (default: fixed); listed below',
  'quirk <name...>': 'differ from the specification; listed below',
  'fault <kind=rate@route...>': 'fail, such as 500=0.05@contacts.enrol; listed below',
  'seed <n>': { text: 'the same seed gives the same ids, API key and faults', default: '1' },
  'key <key>': 'API key (default: drawn from the seed)',
  'channel <id=Name...>': `such as ch_news=Newsletter:opt_in, with its default (default: ${defaultChannels.join(', ')})`,
  'data <file>': 'keep the world in this SQLite file, and go on with the one in it',
  'seed-file <file>': 'what is there at first, as YAML or JSON; not for a --data in use',
  json: 'print one JSON document',
};
type Flags = FlagsOf<typeof options>;

export const help = `
Algorithms:
${helpList(algorithms)}

Quirks, seen on real platforms; several compose:
${helpList(spellings())}
${faultsHelp()}`;

export function faultsHelp(): string {
  const title = 'Faults, each with a rate from 0 to 1 (default 1) and a route (default all):';
  return `\n${title}\n${helpList(faultKinds)}`;
}

function helpList(rows: readonly { name: string; line: string }[]): string {
  const width = Math.max(...rows.map(({ name }) => name.length));
  return rows.map(({ name, line }) => `  ${name.padEnd(width)}  ${line}`).join('\n');
}

/** Runs the emulator until the process is asked to stop, which is not a failure. */
export async function run({ flags }: Called<typeof options>, shell: Shell): Promise<number> {
  const port = parseWhole('--port', flags.port, 65_535);
  const emulator = openEmulator(flags, shell);
  try {
    const { url, close } = await serve(emulator, port).catch((error: unknown) => {
      const code = codeOf(error);
      const mend = 'choose another with --port, or --port 0 for a free one';
      const what = { EADDRINUSE: 'the port is in use', EACCES: 'not allowed to listen here' };
      if (code === 'EADDRINUSE' || code === 'EACCES')
        throw new Invalid(`--port ${port}: ${what[code]}; ${mend}`);
      throw error;
    });
    const lines = flags.json
      ? [JSON.stringify(startDocument(emulator, url))]
      : startLines(emulator, url, flags.data);
    for (const line of lines) shell.print(line);
    await stopped(shell.stop);
    await close();
  } finally {
    emulator.close();
  }
  return exitCode('done');
}

function openEmulator(flags: Flags, shell: Shell): Emulator {
  const seedFile = readSeedFile(flags.seedFile);
  const random = seeded(parseWhole('--seed', flags.seed, Number.MAX_SAFE_INTEGER));
  const { key: apiKey } = flags;
  if (apiKey !== undefined && !/^[\w.~-]+$/.test(apiKey)) {
    throw new Invalid('--key: use letters, digits and . _ ~ - only');
  }
  const channels = (flags.channel ?? (seedFile ? [] : defaultChannels)).map((text) => {
    const [, id, name = id, byDefault] =
      /^([\w.~-]+)(?:=(.+?))?(?::(opt_in|opt_out))?$/.exec(text) ?? [];
    if (id === undefined || name === undefined) {
      throw new Invalid(`--channel "${text}": write id or id=Name, as ch_news=Newsletter`);
    }
    return { id, name, subscription: subscription.optional().parse(byDefault) };
  });
  const storage = flags.data === undefined ? undefined : openFile(flags.data);
  const arranges = flags.seedFile !== undefined || flags.channel !== undefined;
  try {
    if (arranges && storage && storage.load().length > 0) {
      const reason = `${flags.data} holds a world already`;
      shell.note(renderProblem({ reason, fix: '--seed-file and --channel are not looked at' }));
    }
    const clock = { now: Date.now, monotonic: () => performance.now() };
    const { limit: limits, algorithm, quirk: quirks, fault: faults } = flags;
    const imitated = { limits, algorithm, quirks, faults };
    return createEmulator({ clock, random, apiKey, channels, seedFile, storage, ...imitated });
  } catch (error) {
    storage?.close();
    throw error;
  }
}

function readSeedFile(path: string | undefined): SeedFile | undefined {
  if (path === undefined) return undefined;
  try {
    return parseSeedFile(path, readFileSync(path, 'utf8'));
  } catch (error) {
    const code = codeOf(error);
    if (code === '') throw error;
    throw new Invalid(`--seed-file ${path}: cannot be read (${code})`, {
      fix: 'mend the path',
    });
  }
}

/** `sessions`: cookies of a member of the first organization, and of a user without one. */
function startDocument(emulator: Emulator, url: string) {
  const { apiKey, world } = emulator;
  const organizations = emulator.organizations().map((id) => {
    const { apiKey, world } = emulator.player(id);
    return { id, apiKey, channels: world.channels(), session: world.users()[0]?.session };
  });
  const sessions = { member: world.users()[0]?.session, guest: emulator.guest() };
  const channels = world.channels();
  return { url, apiKey, channels, sessions, organizations, firstLoad: firstLoadOf(emulator) };
}

function startLines(emulator: Emulator, url: string, data: string | undefined): string[] {
  const { apiKey, world, organizations } = emulator;
  const channels = world.channels();
  const width = Math.max(...channels.map(({ id }) => id.length));
  const others = organizations().length - 1;
  const { people, ms } = firstLoadOf(emulator);
  const time = ms === 0 ? 'a few seconds' : `about ${lasting(ms)}`;
  const faster =
    ms > longMs ? '; start with --limit contacts.enrol=1000/60 to make it shorter' : '';
  const place = data ? `in ${data}` : 'in memory';
  return [
    `The emulator runs at ${url}, ${place}, until it is stopped (Ctrl+C).`,
    '',
    `API key   ${apiKey}`,
    ...channels.map(
      ({ id, name }, index) => `${index ? '        ' : 'Channels'}  ${id.padEnd(width)}  ${name}`,
    ),
    ...(others > 0 ? [`Besides   organizations: ${others} more; --json names their keys`] : []),
    '',
    `A first load of ${withCommas(people)} people takes ${time} for each channel under ` +
      `these limits${faster}.`,
    '',
    'Paste this into another terminal to use it:',
    '',
    `export PLATFORM_URL=${url}`,
    `export PLATFORM_API_KEY=${apiKey}`,
    'curl -H "x-api-key: $PLATFORM_API_KEY" "$PLATFORM_URL/api/contacts/list"',
    '',
    `The API, to be read:   ${url}/docs`,
    `All one can play with: curl ${url}/_emulator/`,
    `What happened so far:  curl ${url}/_emulator/state`,
    `Somebody signs up:     curl -d '{"email":"ann@example.org"}' ${url}/_emulator/sign-up`,
  ];
}

/** The share of a limit that a mirror leaves to other programs by default (platform.reserve). */
const reserve = 0.1;
const tried = 1000;
/** A first load that takes longer than this is worth a hint. */
const longMs = 2 * 60_000;

/** A thousand people in one channel. */
function firstLoadOf({ limitOf }: Emulator): { people: number; ms: number } {
  const route = 'contacts.enrol';
  const { requests: limit, windowSeconds } = limitOf(route);
  const limits = { [route]: { limit, windowMs: windowSeconds * 1000, others: 0, left: undefined } };
  const { ms } = forecast({ [route]: tried }, { limits, reserve, readMs: 0 });
  return { people: tried, ms: ms ?? 0 };
}
