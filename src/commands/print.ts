import type { CommandModule } from '../compose/process-shell.ts';
import { exitCode } from '../compose/output/failure-report.ts';
import { completionScript, completionsOf } from './completion/complete-words.ts';

export const parts = {
  schema: {
    options: {},
    async run(_command, shell) {
      // A shell that completes a word does not wait for it.
      const { editorSchema } = await import('../config/load-config.ts');
      shell.print(JSON.stringify(editorSchema(), null, 2));
      return exitCode('done');
    },
  },
  completion: {
    options: { '<shell>': { text: 'bash, zsh or fish', choices: ['bash', 'zsh', 'fish'] } },
    help:
      '  bash  `source <(crm-mirror print completion bash)` in ~/.bashrc; needs bash-completion\n' +
      '  zsh   `crm-mirror print completion zsh > ~/.zfunc/_crm-mirror`, a folder in $fpath ' +
      'before compinit\n' +
      '  fish  `crm-mirror print completion fish > ~/.config/fish/completions/crm-mirror.fish`',
    async run(command, shell) {
      for (const line of completionScript(command.args[0] ?? '').split('\n')) shell.print(line);
      return exitCode('done');
    },
  },
  /** The hidden command `complete`, which the printed script calls to complete the last word. */
  complete: {
    options: { '[words...]': 'a command line, after --' },
    async run(command, shell) {
      for (const line of completionsOf(command.args)) shell.print(line);
      return exitCode('done');
    },
  },
} satisfies Record<string, CommandModule>;
