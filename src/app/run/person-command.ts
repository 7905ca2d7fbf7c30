/** Shares what commands have in common that act on one person. */
import { Invalid, renderProblem } from '../../domain/errors.ts';
import type { Key } from '../../domain/record.ts';
import type { Config } from '../../config/config.ts';
import { loadConfig } from '../../config/load-config.ts';
import { email } from '../../platform/request-schemas.ts';
import type { Mirror, MirrorContacts } from '../../engine/context/mirror-context.ts';
import type { PersonLock } from '../../engine/context/person-locks.ts';
import { closeAuditLog } from '../../engine/context/run-context.ts';
import { shortHash } from '../../engine/context/person-identity.ts';
import { assemble } from '../../compose/assemble-mirror.ts';
import { orHandOver } from '../remote/worker-handover.ts';
import { type CommandAnswer, print } from '../snapshot-command.ts';
import { type Called, type FlagsOf, naming, onPerson } from '../../compose/command-options.ts';
import { keyOf, type Names, namesOf, wordOf } from '../../views/lookup/person-names.ts';
import { exitCode } from '../../compose/output/failure-report.ts';
import type { Shell } from '../../compose/process-shell.ts';

const personal = { ...naming, ...onPerson };

interface Named {
  mirror: Mirror;
  contacts: MirrorContacts;
  key: Key;
  hash: string;
  names: Names;
  path: string;
  flags: FlagsOf<typeof personal>;
}

/**
 * Runs `act` for one person with the lease and the person's lock, and prints the result. Throws
 * Invalid for a word that is neither an address nor a hash.
 */
export async function withPerson(
  { flags, args: [who = ''] }: Called<typeof personal>,
  shell: Shell,
  act: (named: Named) => Promise<CommandAnswer>,
  /** Returns the shell to go on with, or undefined if the answer is no. Nothing is open yet. */
  agree?: (word: string, config: Config) => Promise<Shell | undefined>,
): Promise<number> {
  const { acceptLostLedger = false } = flags;
  const config = loadConfig(flags.config, shell.env);
  const word = wordOf(who);
  if (!word.startsWith('#') && !email.safeParse(word).success) {
    throw new Invalid(`"${word}" names nobody`, {
      fix: 'give an address, or a hash as runs and status show it (#9cc428f416d4)',
    });
  }
  // A worker that runs the command for another process has no terminal: the caller has agreed.
  const calling = agree && !shell.held ? await agree(word, config) : shell;
  if (!calling) return exitCode('interrupted');
  return orHandOver(config, calling, async () => {
    const { mirror, close } = await assemble(config, shell, { writes: true, acceptLostLedger });
    let taken: PersonLock | undefined;
    try {
      const { contacts } = mirror;
      if (!contacts) {
        throw new Invalid(`${config.file}: this mirror has no contacts`, { fix: 'add them' });
      }
      const key = await keyOf(word, mirror, shell.stop);
      const hash = shortHash(mirror.snapshot.meta, key);
      const names = namesOf(mirror.snapshot, flags.addresses ?? shell.terminal);
      const path = config.snapshot;
      const ids = mirror.snapshot.recorded.originsOf('contact', key);
      taken = await mirror.locks.take({ keys: [key], ids });
      const told = await act({ mirror, contacts, key, hash, names, path, flags });
      const unwritten = await closeAuditLog(mirror, false);
      // The next run moves the decision to the log.
      if (unwritten) shell.note(`crm-mirror: ${renderProblem(unwritten)}`);
      return print(told, flags, shell);
    } finally {
      taken?.release();
      await close();
    }
  });
}
