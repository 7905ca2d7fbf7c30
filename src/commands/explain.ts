import { readFileSync } from 'node:fs';
import { type Called, type FlagsOf, naming, sinceOf } from '../compose/command-options.ts';
import { resolve } from 'node:path';
import { Invalid, renderProblem } from '../domain/errors.ts';
import type { Key } from '../domain/record.ts';
import { counted } from '../domain/values/counted.ts';
import { keyId, readMemoryKey } from '../store/memory/memory-key.ts';
import { withMemory } from '../store/memory/memory.ts';
import { keyIdOf } from '../store/memory/verify-log.ts';
import type { Snapshot } from '../store/snapshot.ts';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load-config.ts';
import { assemble } from '../compose/assemble-mirror.ts';
import type { Shell } from '../compose/process-shell.ts';
import { exitCode } from '../compose/output/failure-report.ts';
import { lineOf, styled } from '../compose/output/text-style.ts';
import { keyOf, type Names, namesOf, wordOf } from '../views/lookup/person-names.ts';
import { see } from '../views/lookup/seen-mirror.ts';
import { askAbout, type PersonDocument, recordedAbout } from '../views/person/person-document.ts';
import { headOf, personSections } from '../views/person/person-sections.ts';
import { recordNamed } from '../views/person/recorded-rows.ts';
import { formats, signedText, verifyFile, writeSigned } from '../views/person/signed-person.ts';
import { print } from '../app/snapshot-command.ts';

export const options = {
  ...naming,
  '[person]': 'an address, a CRM id, or a hash (#9cc428f416d4)',
  verbose: 'print every rule that is tried, and all that happened',
  offline: 'ask neither the CRM nor the platform: what is recorded',
  'as-of <time>': 'what was known then: 2026-03-01T12:00:00Z, 2026-03-01, 7d',
  'output <file>': 'write all of it to a new file, and sign it (FILE.sig)',
  'format <format>': { text: 'of the file; by default as its name ends', choices: formats },
  'verify <file>': 'say whether the signature of such a file fits, and of which key',
  'public-key <file...>': 'with --verify: accept only these keys (PEM)',
};
type Flags = FlagsOf<typeof options>;

export const help = `
Reads the CRM, the platform, the snapshot, the do-not-contact list, the audit log and the request
log. Says first which mail the person receives and why, then what a run would do. It changes
nothing, and works during a run. It exits with 0 whatever it finds; with --json, \`crm.read\` and
\`platform.read\` say whether both sides could be read. Names and properties are shown where
addresses are.

A file (--output) contains the person's address and data, and other people as hashes. It exits
with 1 if a part could not be read, or if the audit log is not as it was written.`;

export async function run({ flags, args: [who] }: Called<typeof options>, shell: Shell) {
  if (flags.verify !== undefined) return verify(flags.verify, flags, shell);
  if (who === undefined) throw new Invalid('explain: name a person, or a file with --verify');
  if (flags.format !== undefined && flags.output === undefined) {
    throw new Invalid('--format: this is the format of a file', { fix: 'add --output FILE' });
  }
  const now = Date.now();
  const asOf = sinceOf(flags.asOf, now, '--as-of') ?? undefined;
  if (asOf !== undefined && asOf > now) {
    throw new Invalid(`--as-of ${flags.asOf ?? ''}: this time is yet to come`);
  }
  const config = loadConfig(flags.config, shell.env);
  const isWhole = flags.output !== undefined;
  const addresses = isWhole || (flags.addresses ?? shell.terminal);
  const naming = (snapshot: Snapshot, key: Key): Names => {
    const hashed = namesOf(snapshot, false);
    if (!isWhole) return namesOf(snapshot, addresses);
    return (record) => (record.key === key ? key : hashed(record));
  };
  let document: PersonDocument;
  if (flags.offline || asOf !== undefined) {
    const { snapshot } = see(config, false);
    if (!snapshot) {
      throw new Invalid(`${config.snapshot}: there is no snapshot yet`, {
        fix: 'the first sync makes it',
      });
    }
    try {
      refuseShared(who, snapshot);
      const { kind, key } = await recordNamed(who, snapshot);
      if (kind === 'template') {
        throw new Invalid(`"${who}" is a template`, {
          fix: '`crm-mirror export templates` shows what is recorded of it',
        });
      }
      const names = naming(snapshot, key);
      document = recordedAbout({ snapshot, now }, { config, key, names, addresses, asOf, isWhole });
    } finally {
      snapshot.close();
    }
  } else {
    const opened = await assemble(config, shell, { writes: false });
    const { mirror } = opened;
    try {
      refuseShared(who, mirror.snapshot);
      const key = await keyOf(who, mirror, shell.stop);
      const names = naming(mirror.snapshot, key);
      document = await askAbout(opened, shell, { config, key, names, addresses, isWhole });
    } finally {
      await opened.close();
    }
  }
  if (flags.output !== undefined) return write(document, flags, config, shell);
  const extent = flags.verbose ? {} : { happenings: 20 };
  const sections = [{ title: headOf(document), none: '' }, ...personSections(document, extent)];
  return print({ document, sections, isAll: flags.verbose === true }, flags, shell);
}

function refuseShared(who: string, { recorded }: Snapshot): void {
  const keys = recorded.keysOfOrigin('contact', who.trim());
  if (keys.length < 2 || wordOf(who).includes('@')) return;
  throw new Invalid(`"${who}" is the CRM id of ${counted(keys.length, 'address', 'addresses')}`, {
    fix: 'give the address: the answer is about one person',
  });
}

async function write(
  document: PersonDocument,
  { output = '', format, json }: Flags,
  config: Config,
  shell: Shell,
): Promise<number> {
  const path = resolve(output);
  const { keyFile } = config.memory;
  const key = readMemoryKey(keyFile)?.signing;
  if (!key) {
    const reason = `${keyFile}: there is no key yet, so the file is not signed`;
    document.missing.push({ part: 'signature', reason, fix: 'the first run that writes makes it' });
  }
  const { missing, mirror, audit } = document;
  const form = format ?? (/\.html?$/i.test(path) ? 'html' : 'json');
  const text = await signedText(document, { format: form, key, now: Date.now() });
  const written = writeSigned(path, text, key);
  const how = written.key === null ? 'not signed' : `signed with the key ${written.key}`;
  const lost = missing.map(
    ({ part, reason, fix }) => `${part} is missing: ${renderProblem({ reason, fix })}`,
  );
  const lines = [`Written to ${path}, ${how}.`, ...lost];
  print({ document: { mirror, format: form, ...written, missing }, lines }, { json }, shell);
  const altered = audit?.altered ?? null;
  if (altered !== null) shell.note(`crm-mirror: ${altered}`);
  return exitCode(missing.length > 0 || altered !== null ? 'failed' : 'done');
}

function verify(file: string, { publicKey, config, json }: Flags, shell: Shell): number {
  const path = resolve(file);
  const accepted = publicKey
    ? publicKey.map((one) => keyIdOf(readFileSync(one, 'utf8')))
    : withMemory(loadConfig(config, shell.env).memory, ({ log, key }) => [
        ...log.checkpoints().map((one) => keyId(one.publicKey)),
        key.signing.id,
      ]);
  const found = verifyFile(path, new Set(accepted));
  const { fits, trusted, key } = found;
  const mark = fits && trusted ? styled('green', '✓') : styled('red', '✗');
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
