/** Writes the proposed configuration, checks it, and names the next command. */
import { existsSync, writeFileSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { parseDocument } from 'yaml';
import { Invalid } from '../../domain/errors.ts';
import type { Shell } from '../../compose/process-shell.ts';
import { exitCode } from '../../compose/output/exit-codes.ts';
import { configurationText } from './mirror-file.ts';
import type { Proposal } from './propose-columns.ts';
import type { Sample } from './sample/sample.ts';

/** Throws Invalid if the file exists. */
export function refuseExisting(output: string): void {
  if (!existsSync(resolve(output))) return;
  throw new Invalid(`${output} exists, and init overwrites nothing`, {
    fix: 'name another file with --output, or move that one away',
  });
}

/** Returns what is wrong with the name of a mirror; undefined: nothing. */
export function nameFault(mirror: string): string | undefined {
  return /^[a-z0-9-]{1,40}$/.test(mirror) ? undefined : 'write up to 40 of a-z, 0-9 and -';
}

/** What is written, and where to. */
export interface Draft {
  output: string;
  mirror: string;
  sample: Sample;
  proposal: Proposal;
}

/** Writes the file, runs `check` if the platform's key is set, and returns its exit code. */
export async function writeConfiguration(draft: Draft, shell: Shell): Promise<number> {
  const { output, mirror, sample } = draft;
  refuseExisting(output);
  const fix = nameFault(mirror);
  if (fix !== undefined) throw new Invalid(`--mirror ${mirror} is no name of a mirror`, { fix });
  const text = configurationText({ ...draft, folder: dirname(resolve(output)) });
  refuseUnreadable(text, output);
  writeFileSync(resolve(output), text, { flag: 'wx', mode: 0o644 });
  shell.print('');
  shell.print(`Wrote ${output}.`);
  const unset = Object.keys(sample.env ?? {}).filter((name) => !shell.env[name]);
  for (const name of unset) {
    shell.print(`Keep ${name} in the environment: ${output} reads it from there.`);
  }
  return next(output, { ...shell, env: { ...sample.env, ...shell.env } });
}

/** Throws Invalid if the text is no YAML: a file that cannot be loaded is not left behind. */
function refuseUnreadable(text: string, output: string): void {
  const [mistake] = parseDocument(text).errors;
  if (!mistake) return;
  throw new Invalid(`${output} would be no YAML, so it is not written`, {
    fix: 'give the columns and words plain names in the CRM, or write the configuration by hand',
  });
}

async function next(output: string, shell: Shell): Promise<number> {
  const { env, print, call } = shell;
  if (!env['PLATFORM_API_KEY'] || call === undefined) {
    print('Next: set PLATFORM_URL and PLATFORM_API_KEY in the environment, then');
    print(`  crm-mirror check -c ${output}`);
    return exitCode('done');
  }
  print('');
  // The lines of check are rendered already: their colours must not be shown as codes.
  const shown: Shell['print'] = (line) => print(typeof line === 'string' ? { styled: line } : line);
  const code = await call(['check', '-c', output], { ...shell, print: shown });
  print('');
  print(
    code === exitCode('done') || code === exitCode('rejected')
      ? `Next: crm-mirror plan -c ${output}`
      : `Next: correct ${output}, then crm-mirror check -c ${output}`,
  );
  return code;
}

/** Returns a name for the mirror from that of the source: lower case, with hyphens. */
export function mirrorName(origin: string): string {
  const plain = basename(origin)
    .replace(/(\.(csv|tsv|txt|tab|ndjson|jsonl?|xlsx|sqlite3?|db3?|gz))+$/i, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 40);
  return plain === '' ? 'mirror' : plain;
}
