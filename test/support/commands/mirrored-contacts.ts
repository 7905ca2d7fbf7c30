/** A mirror on a platform that can be told to fail, and its command line within this process. */
import { join } from 'node:path';
import { main } from '../../../src/cli.ts';
import { createWorld, type World, type WorldOptions } from '../engine/engine-world.ts';

export const ann = 'ann@example.com';
export const bob = 'bob@example.com';

export interface Said {
  code: number;
  out: string;
  err: string;
  /** The document of --json. */
  json: ReturnType<typeof JSON.parse>;
}

export interface Mirrored extends World {
  /** The configuration, and the snapshot it names. */
  file: string;
  path: string;
  call(...argv: string[]): Promise<Said>;
  /** The same at a terminal. */
  seen(...argv: string[]): Promise<Said>;
}

export async function mirrored(options: WorldOptions = { kinds: ['contact'] }): Promise<Mirrored> {
  const world = await createWorld(options);
  world.people([
    { email: ann, news: 'yes' },
    { email: bob, news: 'yes', product: 'no' },
  ]);
  const file = world.config();
  return {
    ...world,
    file,
    path: join(world.folder, 'cli/snapshot.sqlite'),
    call: async (...argv) => call([...argv, '-c', file], false),
    seen: async (...argv) => call([...argv, '-c', file], true),
  };
}

async function call(argv: readonly string[], terminal: boolean): Promise<Said> {
  const out: string[] = [];
  const err: string[] = [];
  const signal = new AbortController().signal;
  const code = await main(argv, {
    env: {},
    print: (line) => void out.push(line),
    note: (line) => void err.push(line),
    progress: () => undefined,
    terminal,
    interactive: false,
    stop: signal,
    abort: signal,
  });
  const text = out.join('\n');
  const json = text.startsWith('{') && JSON.parse(text);
  return { code, out: text, err: err.join('\n'), json };
}
