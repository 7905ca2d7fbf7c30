import type { Command } from 'commander';
import { completionScript } from './completion/complete-words.ts';
import type { Shell } from '../compose/process-shell.ts';
import { exitCode } from '../compose/output/exit-codes.ts';

const shells = ['bash', 'zsh', 'fish'];

export function options(command: Command): void {
  command
    .addArgument(command.createArgument('<shell>', 'bash, zsh or fish').choices(shells))
    .addHelpText(
      'after',
      '\nbash: source <(crm-mirror completion bash), in ~/.bashrc; needs the package bash-completion\n' +
        'zsh:  crm-mirror completion zsh > ~/.zfunc/_crm-mirror, a folder in $fpath before compinit\n' +
        'fish: crm-mirror completion fish > ~/.config/fish/completions/crm-mirror.fish',
    );
}

/** Prints the script that makes a shell complete this program's commands, options and values. */
export async function run(command: Command, shell: Shell): Promise<number> {
  const [name = ''] = command.args;
  for (const line of completionScript(name).split('\n')) shell.print(line);
  return exitCode('done');
}
