/** The command line called within this process, by a shell that keeps all it is told. */
import { main } from '../../../src/cli.ts';

/** What it ended with, its results, and every line of both of its ends. */
export async function calling(
  argv: readonly string[],
  env: Record<string, string> = {},
): Promise<{ code: number; out: string; said: string }> {
  const lines: string[] = [];
  const results: string[] = [];
  const say = (line: string) => void lines.push(line);
  const signal = new AbortController().signal;
  const code = await main([...argv], {
    env,
    print: (line) => {
      results.push(line);
      say(line);
    },
    note: say,
    progress: () => undefined,
    terminal: false,
    interactive: false,
    stop: signal,
    abort: signal,
  });
  return { code, out: results.join('\n'), said: lines.join('\n') };
}
