import { editorSchema } from '../config/editor-schema.ts';
import type { CommandModule } from '../compose/process-shell.ts';
import { exitCode } from '../compose/output/exit-codes.ts';
import { completionScript } from './completion/complete-words.ts';

const shells = ['bash', 'zsh', 'fish'];

export const parts = {
  schema: {
    options: () => undefined,
    async run(_command, shell) {
      shell.print(JSON.stringify(editorSchema(), null, 2));
      return exitCode('done');
    },
  },
  completion: {
    options(command) {
      command
        .addArgument(command.createArgument('<shell>', 'bash, zsh or fish').choices(shells))
        .addHelpText(
          'after',
          '\nbash: source <(crm-mirror print completion bash), in ~/.bashrc; needs bash-completion\n' +
            'zsh:  crm-mirror print completion zsh > ~/.zfunc/_crm-mirror, a folder in $fpath before\n' +
            '      compinit\n' +
            'fish: crm-mirror print completion fish > ~/.config/fish/completions/crm-mirror.fish',
        );
    },
    async run(command, shell) {
      for (const line of completionScript(command.args[0] ?? '').split('\n')) shell.print(line);
      return exitCode('done');
    },
  },
} satisfies Record<string, CommandModule>;
