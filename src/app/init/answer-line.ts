/** Adds to a refusal the one command line that decides all of it, and what that line states. */
import { Invalid } from '../../domain/errors.ts';
import { quoted } from '../../sources/shared/field-suggestions.ts';
import { commandLine, type Flags, withAnswers } from './init-flags.ts';
import type { FlagAnswer, Undecided } from './sample/undecided.ts';

/** Returns the refusal with the command line as its last problem. */
export function withAnswerLine({ problems, answers }: Undecided, flags: Flags): Invalid {
  if (answers.length === 0) return new Invalid(problems);
  const reason = `all of it in one line, if this is true: ${statements(answers).join('; ')}`;
  const fix = commandLine(withAnswers(flags, answers));
  return new Invalid([...problems, { code: 'invalid', reason, fix }]);
}

function statements(answers: readonly FlagAnswer[]): string[] {
  const open = answers.flatMap((one) => one.unused ?? []).map(quoted);
  const others = answers.flatMap((one) => (one.unused === undefined ? one.states : []));
  if (open.length === 0) return others;
  const [those, say] = open.length === 1 ? ['', 'if it says'] : ['those of ', 'that say'];
  const stands = `COLUMN stands for ${those}${open.join(', ')} ${say} nothing about who wants no mail`;
  return [...others, stands];
}
