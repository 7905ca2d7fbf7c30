import type { Command } from 'commander';
import { by, type FlagsOf, looking, onPerson } from '../compose/command-options.ts';
import { Invalid } from '../domain/errors.ts';
import { settleConflict } from '../engine/erasure/person-decisions.ts';
import { withPerson } from '../app/run/person-command.ts';
import { operatorName, type Shell } from '../compose/process-shell.ts';
import { requiredText } from '../app/run/decider-options.ts';
import { instant } from '../compose/output/format-values.ts';

export const options = {
  ...looking,
  ...onPerson,
  'channel <id>': { text: 'the channel of the conflict', isRequired: true },
  in: 'the person wants in, although the mirror, or the platform, shows an opt-out',
  out: 'the person wants out',
  'reason <text>': { text: 'why', isRequired: true },
  'evidence <text>': {
    text: 'where it can be looked up: a ticket, a signed form',
    isRequired: true,
  },
  ...by,
};
type Flags = FlagsOf<typeof options>;

export const help = `
Records the decision, with who and when, and sends nothing: the next run does. \`explain\` shows
it. It reads the CRM and the platform, to decide about what they show now.

--in is accepted only where nobody is known to have opted out: for an opt-out that the mirror made
on the CRM's word, and for one that may be a default of the platform. It counts for that very
opt-out: if the person opts out again, they are out again. What a person did on the platform, a
block, a bounce, a complaint and an erasure are refused (exit 2).

--out goes to the do-not-contact list. Runs opt the person out of the channel as if the CRM said
so, until the CRM states an opt-in later (contacts.consentAt), or \`allow\` takes it back. Without a
conflict it is refused: record the no in the CRM, and call \`sync --person\`.

The texts are stored and logged: name no address in them.`;

/** Records how an operator settles a conflict. Sends nothing. */
export async function run(command: Command, shell: Shell): Promise<number> {
  const { channel, ...flags } = command.opts<Flags>();
  if (flags.in === flags.out) {
    throw new Invalid('--in or --out is needed, and only one of them', {
      fix: 'say what the person wants',
    });
  }
  const as: 'in' | 'out' = flags.in ? 'in' : 'out';
  const fix = 'fill it: the decision is kept with it';
  const reason = requiredText('--reason', flags.reason, fix);
  const evidence = requiredText('--evidence', flags.evidence, fix);
  const by = requiredText('--by', flags.by ?? operatorName(shell), fix);
  return withPerson(command, shell, async ({ mirror, contacts, key, hash }) => {
    const caller = operatorName(shell);
    const asked = { contacts, key, channel, as, by, caller, reason, evidence };
    const at = await settleConflict(mirror, asked, { signal: shell.stop, abort: shell.abort });
    const settled = { channel, as, by, at: instant(at), reason, evidence };
    const does = { in: 'opts the person in', out: 'opts the person out where it is subscribed' };
    return {
      document: { mirror: mirror.name, person: hash, ...settled },
      lines: [
        `${hash} in ${channel} is resolved as an opt-${as}, by ${by}.`,
        `The next run ${does[as]}. \`crm-mirror explain\` shows the decision.`,
      ],
    };
  });
}
