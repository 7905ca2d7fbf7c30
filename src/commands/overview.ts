/** Writes what `crm-mirror` alone and `crm-mirror --help` print, for 80 columns. */
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
