/** Shares the opening and output of all commands that read a mirror's snapshot. */
import { existsSync } from 'node:fs';
import { loadConfig } from '../config/load-config.ts';
import type { Snapshot } from '../store/snapshot.ts';
import { withSnapshot } from '../compose/mirror-files.ts';
import { orHandOver } from './remote/worker-handover.ts';
import { namesIn, see, type Seen, type OpenedMirror } from '../views/lookup/seen-mirror.ts';
import type { Shell } from '../compose/process-shell.ts';
import type { LookFlags } from '../compose/command-options.ts';
import { exitCode } from '../compose/output/failure-report.ts';
import { type Line, wrapped } from '../compose/output/text-style.ts';
import { sectionLines } from '../views/render/text.ts';
import type { Section } from '../views/sections.ts';

/** The result of a command: the document for --json, and what people read. */
export interface CommandAnswer {
  document: object;
  sections?: readonly Section[];
  /** Whether folded sections are printed, too. */
  isAll?: boolean;
  lines?: readonly Line[];
  /** Lines for programs, which no terminal breaks. */
  data?: readonly string[];
  /** The exit code; 0 by default. */
  code?: number;
}

/** Takes no lease and changes nothing, so it works while another process writes. */
export async function look(
  flags: LookFlags,
  shell: Shell,
  tell: (seen: Seen) => CommandAnswer | Promise<CommandAnswer>,
): Promise<number> {
  const config = loadConfig(flags.config, shell.env);
  const seen = see(config, flags.addresses ?? shell.terminal);
  try {
    return print(await tell(seen), flags, shell);
  } finally {
    seen.snapshot?.close();
  }
}

/** Under the lease; if a worker has it, that worker does. Throws Busy if another process has it. */
export async function change(
  flags: LookFlags,
  shell: Shell,
  act: (opened: OpenedMirror) => CommandAnswer,
): Promise<number> {
  const config = loadConfig(flags.config, shell.env);
  const tell = (snapshot: Snapshot | undefined): number => {
    const names = namesIn(snapshot, flags.addresses ?? shell.terminal);
    return print(act({ config, snapshot, names }), flags, shell);
  };
  const held = shell.held?.();
  if (!held) {
    return orHandOver(config, shell, async () =>
      existsSync(config.snapshot) ? withSnapshot(config, tell) : tell(undefined),
    );
  }
  try {
    return tell(held.mirror.snapshot);
  } finally {
    await held.close();
  }
}

/** Prints a result: with --json its document, otherwise what people read. Returns its exit code. */
export function print(answer: CommandAnswer, flags: { json?: true | undefined }, shell: Shell) {
  const { document, sections = [], isAll = false, lines = [], data = [] } = answer;
  const { width } = shell;
  if (flags.json) shell.print(JSON.stringify(document, null, 2));
  else {
    const wrappedLines = lines.flatMap((line) => wrapped(line, { width }));
    const all = [...sectionLines(sections, { width, isAll }), ...wrappedLines, ...data];
    for (const line of all) shell.print(line);
  }
  return answer.code ?? exitCode('done');
}
