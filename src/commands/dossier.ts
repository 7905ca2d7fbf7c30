import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { keyIdOf } from '../store/audit/verify-log.ts';
import { existingKey, keyId } from '../store/audit/signing-key.ts';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load-config.ts';
import { Invalid, renderProblem } from '../domain/errors.ts';
import type { Key } from '../domain/record.ts';
import { counted } from '../domain/values/counted.ts';
import type { Mirror } from '../engine/context/mirror-context.ts';
import { assemble } from '../compose/assemble-mirror.ts';
import { auditLogOf } from '../compose/audit-trail.ts';
import type { Shell } from '../compose/process-shell.ts';
import { type Dossier, dossierOf } from '../views/dossier/dossier-document.ts';
import { dossierLines } from '../views/dossier/dossier-page.ts';
import { type Format, textOf, verifyFile, writeSigned } from '../views/dossier/signed-dossier.ts';
import { sinceOf } from '../views/lookup/list-options.ts';
import { keyOf, namesOf, wordOf } from '../views/lookup/person-names.ts';
import { type LookFlags, namingOptions, print } from '../app/snapshot-command.ts';
import { exitCode } from '../compose/output/exit-codes.ts';
import { lineOf, styled } from '../compose/output/text-style.ts';

interface Flags extends LookFlags {
  asOf?: string;
  output?: string;
  format?: Format;
  offline?: true;
  verify?: string;
  publicKey?: string[];
}

export function options(command: Command): void {
  namingOptions(command)
    .argument('[person]', 'an address, a CRM id, or a hash (#9cc428f416d4)')
    .option('--as-of <time>', 'what was known then: 2026-03-01T12:00:00Z, 2026-03-01, 7d')
    .option('--output <file>', 'write to this file, which must not exist, and sign it (FILE.sig)')
    .addOption(
      new Option('--format <format>', 'of the file; by default as its name ends').choices([
        'json',
        'html',
      ]),
    )
    .option('--offline', 'do not ask the platform')
    .option('--verify <file>', 'say whether the signature of a dossier fits, and of which key')
    .option('--public-key <file...>', 'with --verify: accept only these keys (PEM)')
    .addHelpText(
      'after',
      '\nReads the CRM, the platform, the snapshot, the do-not-contact list, the audit log and the\n' +
        'request log, and says first which mail the person receives and why. It changes nothing, and\n' +
        'works during a run. It exits with 1 if a part could not be read, or if the audit log is not\n' +
        'as it was written, and says so in the result. The document and the page contain the\n' +
        "person's address and data, and other people as hashes.",
    );
}

/** Prints or writes the dossier of a person, or verifies one. */
export async function run(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<Flags>();
  const [who] = command.args;
  if (flags.verify !== undefined) return verify(flags.verify, flags, shell);
  if (who === undefined) throw new Invalid('dossier: name a person, or a file with --verify');
  if (flags.format !== undefined && flags.output === undefined) {
    throw new Invalid('--format: this is the format of a file', { fix: 'add --output FILE' });
  }
  const now = Date.now();
  const asOf = sinceOf(flags.asOf, now, '--as-of');
  if (asOf !== null && asOf > now) {
    throw new Invalid(`--as-of ${flags.asOf ?? ''}: this time is yet to come`);
  }
  const config = loadConfig(flags.config, shell.env);
  const opened = await assemble(config, shell, { writes: false });
  try {
    const { mirror } = opened;
    const key = await personOf(who, mirror, shell.stop);
    const asked = { key, asOf, offline: flags.offline ?? false };
    const document = await dossierOf(config, { opened, shell }, asked);
    if (flags.output !== undefined) {
      write(document, { ...flags, config, output: resolve(flags.output) }, shell);
    } else if (flags.json) {
      shell.print(textOf(document, undefined).trimEnd());
    } else {
      const names = namesOf(mirror.snapshot, flags.addresses ?? shell.terminal);
      const lines = dossierLines(document, names({ kind: 'contact', key }));
      for (const line of lines) shell.print(line);
    }
    const altered = document.audit?.altered ?? null;
    if (altered !== null) shell.note(`crm-mirror: ${altered}`);
    return exitCode(document.missing.length > 0 || altered !== null ? 'failed' : 'done');
  } finally {
    await opened.close();
  }
}

/** Returns the key of the person. Throws Invalid if several people share a CRM id. */
async function personOf(who: string, mirror: Mirror, signal: AbortSignal): Promise<Key> {
  const keys = mirror.snapshot.recorded.keysOfOrigin('contact', who.trim());
  const [key] = keys;
  if (key === undefined || wordOf(who).includes('@')) return keyOf(who, mirror, signal);
  if (keys.length === 1) return key;
  throw new Invalid(`"${who}" is the CRM id of ${counted(keys.length, 'address', 'addresses')}`, {
    fix: 'give the address: a dossier is about one person',
  });
}

interface Writing extends Pick<Flags, 'format' | 'json'> {
  config: Config;
  output: string;
}

function write(document: Dossier, { config, output, format, json }: Writing, shell: Shell): void {
  const signing = existingKey(config.audit.keyFile);
  if (!signing) {
    const reason = `${config.audit.keyFile}: there is no key yet, so the file is not signed`;
    document.missing.push({ part: 'signature', reason, fix: 'the first run that writes makes it' });
  }
  const { missing, mirror } = document;
  const form = format ?? (/\.html?$/i.test(output) ? 'html' : 'json');
  const written = writeSigned(output, { document, format: form }, signing);
  const how = written.key === null ? 'not signed' : `signed with the key ${written.key}`;
  const lost = missing.map(
    ({ part, ...problem }) => `${part} is missing: ${renderProblem(problem)}`,
  );
  const lines = [`Written to ${output}, ${how}.`, ...lost];
  print({ document: { mirror, format: form, ...written, missing }, lines }, { json }, shell);
}

function verify(file: string, { publicKey, config, json }: Flags, shell: Shell): number {
  const path = resolve(file);
  const accepted = publicKey
    ? publicKey.map((one) => keyIdOf(readFileSync(one, 'utf8')))
    : keysOf(loadConfig(config, shell.env));
  const found = verifyFile(path, new Set(accepted));
  const { fits, trusted, key } = found;
  const isGood = fits && trusted;
  const mark = isGood ? styled('green', '✓') : styled('red', '✗');
  const verdict = fits ? 'The signature fits' : 'The signature does not fit';
  const stranger =
    'this key is none of those that are accepted: compare it, or give it with --public-key';
  print(
    {
      document: { file: path, ...found },
      lines: [
        lineOf(mark, ` ${verdict}: ${path}`),
        ...(key === null ? [] : [`  key  ${key}`]),
        ...found.faults.map((fault) => lineOf('  ', styled('red', fault))),
        ...(fits && !trusted ? [lineOf('  ', styled('red', stranger))] : []),
      ],
    },
    { json },
    shell,
  );
  return exitCode(found.fits && found.trusted ? 'done' : 'failed');
}

function keysOf(config: Config): string[] {
  const log = auditLogOf(config);
  try {
    const now = existingKey(config.audit.keyFile);
    const before = (log?.checkpoints() ?? []).map(({ publicKey }) => publicKey);
    return [...new Set([...before, ...(now ? [now.publicKey] : [])])].map(keyId);
  } finally {
    log?.close();
  }
}
