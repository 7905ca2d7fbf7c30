/** A worker, as a process of its own. */
import { expect } from 'vitest';
import { launch } from '../engine/engine-world.ts';
import { untilHolds } from '../waiting.ts';

/** Until it holds. */
export const until = async (holds: () => boolean | Promise<boolean>): Promise<void> =>
  untilHolds(async () => expect(await holds()).toBe(true));

export function start(file: string, ...flags: string[]) {
  return startWorker(['-c', file, ...flags]);
}

/** A worker of a folder of mirrors. */
export function startFolder(folder: string, env: Record<string, string> = {}) {
  return startWorker(['--mirrors', folder], env);
}

function startWorker(args: readonly string[], env: Record<string, string> = {}) {
  const { child, ended } = launch(['worker', ...args], env);
  let err = '';
  child.stderr?.on('data', (chunk: Buffer) => void (err += chunk.toString()));
  const said = async (text: string) => until(() => err.includes(text));
  return {
    ended,
    kill: (signal: NodeJS.Signals) => void child.kill(signal),
    heard: () => err,
    said,
    /** Where its server listens, once it does and the mirrors are served. */
    async url(): Promise<string> {
      await said('worker serves');
      await said('listens on');
      return /listens on (\S+)/.exec(err)?.[1] ?? '';
    },
    /** Asked to end, it does; its exit code. */
    async ends(): Promise<number | null> {
      child.kill('SIGTERM');
      return (await ended).code;
    },
  };
}
