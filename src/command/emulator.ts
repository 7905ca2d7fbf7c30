import { once } from 'node:events';
import type { Command } from 'commander';
import { createEmulator, type Emulator } from '../emulator/emulator.ts';
import { seeded } from '../emulator/random.ts';
import { serve } from '../emulator/serve.ts';
import type { Channel } from '../emulator/store/contact.ts';
import { Invalid } from '../model/errors.ts';
import type { Shell } from './shell.ts';

interface Flags {
  port: string;
  limit?: string[];
  seed: string;
  key?: string;
  channel?: string[];
  json?: true;
}

const defaultChannels = ['ch_news=Newsletter', 'ch_product=Product updates'];

export function options(command: Command): void {
  command
    .option('--port <n>', 'port to listen on; 0 picks a free one', '4010')
    .option('--limit <route=limit/window...>', 'such as contacts.enrol=30/60 (30 in 60 seconds)')
    .option('--seed <n>', 'the same seed gives the same ids and API key', '1')
    .option('--key <key>', 'API key (default: drawn from the seed)')
    .option('--channel <id=Name...>', `channels (default: ${defaultChannels.join(', ')})`)
    .option('--json', 'print one JSON document');
}

/** Runs until the shell is asked to stop; that is what it is for, so it answers 0. */
export async function run(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<Flags>();
  const port = parseWhole('--port', flags.port, 65_535);
  const emulator = createEmulator({
    clock: { now: Date.now, monotonic: () => performance.now() },
    random: seeded(parseWhole('--seed', flags.seed, Number.MAX_SAFE_INTEGER)),
    apiKey: parseKey(flags.key),
    channels: parseChannels(flags.channel ?? defaultChannels),
    limits: flags.limit,
  });
  const served = await serveAt(emulator, port);
  if (flags.json) printJson(emulator, served.url, shell);
  else printText(emulator, served.url, shell);
  if (!shell.stop.aborted) await once(shell.stop, 'abort');
  await served.close();
  return 0;
}

function printJson({ apiKey, world }: Emulator, url: string, shell: Shell): void {
  shell.print(JSON.stringify({ url, apiKey, channels: world.channels() }));
}

function printText({ apiKey, world }: Emulator, url: string, shell: Shell): void {
  const channels = world.channels();
  const width = Math.max(...channels.map(({ id }) => id.length));
  const lines = [
    `The emulator runs at ${url}, in memory, until it is stopped (Ctrl+C).`,
    '',
    `API key   ${apiKey}`,
    ...channels.map(
      ({ id, name }, index) => `${index ? '        ' : 'Channels'}  ${id.padEnd(width)}  ${name}`,
    ),
    '',
    'Paste this into another terminal to use it:',
    '',
    `export PLATFORM_URL=${url}`,
    `export PLATFORM_API_KEY=${apiKey}`,
    'curl -H "x-api-key: $PLATFORM_API_KEY" "$PLATFORM_URL/api/contacts/list"',
    '',
    `What happened so far:  curl ${url}/_emulator/state`,
    `Somebody signs up:     curl -d '{"email":"ann@example.org"}' ${url}/_emulator/sign-up`,
  ];
  for (const line of lines) shell.print(line);
}

async function serveAt(emulator: Emulator, port: number) {
  try {
    return await serve(emulator, port);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    const mend = 'choose another with --port, or --port 0 for a free one';
    if (code === 'EADDRINUSE') throw new Invalid(`--port ${port}: the port is in use; ${mend}`);
    if (code === 'EACCES') throw new Invalid(`--port ${port}: not allowed to listen here; ${mend}`);
    throw error;
  }
}

function parseWhole(flag: string, text: string, most: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value <= most) return value;
  throw new Invalid(`${flag} "${text}": give a whole number from 0 to ${most}`);
}

function parseKey(key: string | undefined): string | undefined {
  if (key === undefined || /^[\w.~-]+$/.test(key)) return key;
  throw new Invalid('--key: use letters, digits and . _ ~ - only');
}

function parseChannels(texts: readonly string[]): Channel[] {
  return texts.map((text) => {
    const [, id, name] = /^([\w.~-]+)(?:=(.+))?$/.exec(text) ?? [];
    if (id !== undefined) return { id, name: name ?? id };
    throw new Invalid(`--channel "${text}": write id or id=Name, as ch_news=Newsletter`);
  });
}
