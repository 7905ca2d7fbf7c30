/** Writes what `crm-mirror` alone and `--help` print. */
import { renderLine, wrapped } from '../compose/output/text-style.ts';
import { commands, tasks } from './table.ts';

/** Returns the help: the commands of every day one by one, the others by what they are for. */
export function overview(): string {
  const [daily, ...others] = Object.entries(tasks).map(([task, about]) => ({
    task,
    about,
    members: commands.filter((one) => one.task === task && !one.isHidden),
  }));
  return [
    'Usage: crm-mirror COMMAND [options]',
    '',
    'Keeps the contacts, subscriptions and templates of an email platform equal to',
    'the CRM. COMMAND --help explains a command, --version prints the version.',
    '',
    ...(daily?.members ?? []).map(({ name, summary }) => `  ${name.padEnd(10)}${summary}`),
    '',
    ...others.flatMap(({ task, about, members }) => {
      // The group `platform` is a task of its own.
      const names = members.map(({ name }) => name.replace(new RegExp(`^${task}( |$)`), ''));
      const shown = names.filter((name) => name !== '' && !name.includes(' '));
      return [`${task}: ${shown.join(', ')}`, `  ${about}`];
    }),
    '',
  ].join('\n');
}

/**
 * Returns the lines of a help text of this width. Lines that are not indented are paragraphs; what
 * is explained in a list stays in its column.
 */
export function helpLines(text: string, width: number): string[] {
  const paragraphs: string[] = [];
  for (const line of text.trimEnd().split('\n')) {
    const last = paragraphs.at(-1) ?? '';
    const goesOn = /^\S/.test(line)
      ? /^\S/.test(last)
      : /^ {6}/.test(line) && /^ {1,5}\S/.test(last);
    if (goesOn) paragraphs.splice(-1, 1, `${last} ${line.trimStart()}`);
    else paragraphs.push(line);
  }
  return paragraphs.flatMap((line) => {
    const hang = /^ +(?:\S+ )*\S+ {2,}(?=\S)|^ */.exec(line)?.[0].length ?? 0;
    return wrapped(line, { width, hang }).map((one) => renderLine(one, false));
  });
}
