/** What a worker does of what is handed to it: the command line of a caller, in its own mirror. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../config/config.ts';
import type { Seal } from '../queue/seal.ts';
import type { Assembled } from './assemble.ts';
import { explain } from './fault.ts';
import { call, type Call, type News, type Outcome } from './handover.ts';
import type { Shell } from './shell.ts';

/** Progress is told no more often. */
const progressEachMs = 500;

export interface Hand {
  config: Config;
  shell: Shell;
  seal: Seal;
  /** Beside whatever runs, or when nothing else does. */
  hold<T>(how: 'beside' | 'alone', work: (held: Assembled) => Promise<T>): Promise<T>;
}

const besides: ReadonlySet<string> = new Set(['one', 'forget', 'allow', 'approve', 'retry']);
const alone: ReadonlySet<string> = new Set(['sync', 'backfill', 'apply']);

/** Answers what came of it, sealed; never throws but for what was sealed with another key. */
export async function doHanded(
  { config, shell, seal, hold }: Hand,
  sealed: string,
  tell: (sealed: string) => void,
): Promise<string> {
  const wanted = call.parse(JSON.parse(seal.open(sealed)));
  const lines: string[] = [];
  const inner = shellFor(shell, wanted, {
    print: (line) => lines.push(line),
    told: (news) => tell(seal.close(JSON.stringify(news))),
  });
  const [name = ''] = wanted.argv;
  const how = besides.has(name) ? 'beside' : 'alone';
  const code = await attempt();
  return seal.close(JSON.stringify({ code, lines } satisfies Outcome));

  async function attempt(): Promise<number> {
    try {
      if (!shell.call || !(besides.has(name) || alone.has(name))) return 2;
      const { call: run } = shell;
      return await hold(how, (held) =>
        withPlan(wanted, (argv) =>
          run([...argv, '-c', config.file], { ...inner, held: () => held }),
        ),
      );
    } catch (error) {
      const fault = explain(error);
      inner.note(`crm-mirror: ${fault.text}`);
      return fault.code;
    }
  }
}

/** With the plan in a file of its own, as the command expects it. */
async function withPlan<T>({ argv, plan }: Call, run: (argv: string[]) => Promise<T>): Promise<T> {
  if (plan === undefined) return run(argv);
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-'));
  try {
    const file = join(folder, 'plan.json');
    writeFileSync(file, plan, { mode: 0o600 });
    const [name = '', , ...rest] = argv;
    return await run([name, file, ...rest]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function shellFor(
  { env, stop, abort, call: again }: Shell,
  { terminal, interactive }: Call,
  hears: { print(line: string): void; told(news: News): void },
): Shell {
  let toldAt = Number.NEGATIVE_INFINITY;
  return {
    env,
    stop,
    abort,
    ...(again && { call: again }),
    terminal,
    interactive,
    print: hears.print,
    note: (note) => hears.told({ note }),
    progress(progress) {
      const now = performance.now();
      if (!interactive || now - toldAt < progressEachMs) return;
      toldAt = now;
      hears.told({ progress });
    },
  };
}
