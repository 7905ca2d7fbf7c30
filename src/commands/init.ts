import { platformChannels, readSample } from '../app/init/read-sample.ts';
import type { CalledWith } from '../compose/command-options.ts';
import { type Flags, Undecided, withAnswerLine } from '../app/init/flags.ts';
import { previewLines } from '../app/init/preview.ts';
import { type Proposal, propose } from '../app/init/propose.ts';
import { mirrorName, refuseExisting, writeConfiguration } from '../app/init/mirror-file.ts';
import type { Shell } from '../compose/process-shell.ts';
import { Invalid } from '../domain/errors.ts';

export { options } from '../app/init/flags.ts';

/** Exit code 2 if something cannot be decided without a guess: the message names the option. */
export async function run({ flags: own, args: [named] }: CalledWith<Flags>, shell: Shell) {
  const flags = { ...own, ...(named !== undefined && { source: named }) };
  if (shell.canAsk === true && flags.yes !== true) {
    const { converse } = await import('../app/init/conversation.ts');
    return converse(flags, shell);
  }
  const { source, output } = flags;
  if (source === undefined) {
    throw new Invalid('init asks its questions only on a terminal, and no source is named', {
      fix: 'write crm-mirror init FILE --channel ID=COLUMN --yes',
    });
  }
  refuseExisting(output);
  const sample = await readSample({ ...flags, source, env: shell.env, signal: shell.stop });
  const asTheyAre = shell.terminal || flags.addresses === true;
  const { channels: platform, note } = await platformChannels(shell.env, shell.stop);
  if (note !== undefined) shell.note(`crm-mirror: ${note}`);
  let proposal: Proposal;
  try {
    proposal = propose(sample, flags, { asTheyAre, platform });
  } catch (error) {
    // A refusal names the command line that decides all columns.
    const whole = { ...flags, source: sample.named ?? source };
    throw error instanceof Undecided ? withAnswerLine(error, whole) : error;
  }
  for (const line of previewLines(sample, proposal, { asTheyAre })) shell.print(line);
  if (!flags.yes) {
    throw new Invalid('nothing is written yet', { fix: 'if this is right, add --yes' });
  }
  const mirror = flags.mirror ?? mirrorName(sample.origin);
  return writeConfiguration({ output, mirror, sample, proposal }, shell);
}
