/** Processes of a benchmark: each is given one task, and says what came of it. */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** The file of this name, as `stage/platform`, in a process of its own. */
export function begin(name: string, task: object): ChildProcess {
  return fork(join(import.meta.dirname, '..', `${name}.ts`), [JSON.stringify(task)]);
}

/** The next thing it says; throws when it ends without a word. */
export async function ask<T>(child: ChildProcess): Promise<T> {
  const heard = new AbortController();
  const { signal } = heard;
  const ended = once(child, 'exit', { signal }).then(() => {
    throw new Error(`${child.spawnargs.join(' ')} has ended`);
  });
  const [said] = await Promise.race([once(child, 'message', { signal }), ended]);
  heard.abort();
  return said;
}

/** Within such a process: what it was given. It ends with who began it. */
export function given(): string {
  process.once('disconnect', () => process.kill(process.pid));
  return process.argv[2] ?? '';
}
