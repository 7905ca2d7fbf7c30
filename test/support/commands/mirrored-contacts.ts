/** A mirror on a platform that can be told to fail, and the command line within this process. */
import { join } from 'node:path';
import { expect } from 'vitest';
import { main } from '../../../src/cli.ts';
import { createWorld, type Lines, type World, type WorldOptions } from '../engine/engine-world.ts';

export const ann = 'ann@example.com';
export const bob = 'bob@example.com';

export interface Said {
  code: number;
  out: string;
  err: string;
  /** Both of them, in the order of their lines. */
  said: string;
  /** The document of --json; false for lines of documents. */
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

export interface MirroredOptions extends WorldOptions {
  /** Lines of the configuration, where they are not the usual ones. */
  lines?: Lines;
  env?: Record<string, string>;
  /** Texts that no command may print. */
  hides?: readonly string[];
}

/** Makes a mirror of two people; `lines` may have it read another source than their CSV file. */
export async function mirrored({
  lines,
  env,
  hides = [],
  ...options
}: MirroredOptions = {}): Promise<Mirrored> {
  const world = await createWorld({ kinds: ['contact'], ...options });
  world.people([
    { email: ann, news: 'yes' },
    { email: bob, news: 'yes', product: 'no' },
  ]);
  const file = world.config(lines);
  const called = async (argv: readonly string[], terminal: boolean): Promise<Said> => {
    const result = await calling([...argv, '-c', file], { env, terminal });
    for (const text of hides) expect(result.said).not.toContain(text);
    return result;
  };
  return {
    ...world,
    file,
    path: join(world.folder, 'cli/snapshot.sqlite'),
    call: async (...argv) => called(argv, false),
    seen: async (...argv) => called(argv, true),
  };
}

interface Shell {
  env?: Record<string, string> | undefined;
  terminal?: boolean;
}

/** Calls the command line within this process, by a shell that keeps all it is told. */
export async function calling(
  argv: readonly string[],
  { env = {}, terminal = false }: Shell = {},
): Promise<Said> {
  const out: string[] = [];
  const err: string[] = [];
  const said: string[] = [];
  const keep = (lines: string[]) => (line: string) => {
    lines.push(line);
    said.push(line);
  };
  const signal = new AbortController().signal;
  const code = await main(argv, {
    env,
    print: keep(out),
    note: keep(err),
    progress: () => undefined,
    terminal,
    canAsk: terminal,
    interactive: false,
    stop: signal,
    abort: signal,
  });
  const text = out.join('\n');
  const isDocument = text.startsWith('{') && !text.includes('}\n{');
  const json = isDocument && JSON.parse(text);
  return { code, out: text, err: err.join('\n'), said: said.join('\n'), json };
}
