/**
 * Knows where the configuration is unless a command names one, and writes commands that a user can
 * copy: they name it unless it is there, and the program as it was called.
 */
import { existsSync, readFileSync } from 'node:fs';
import { Option } from 'commander';

function defaultConfig(): string {
  return existsSync(inFolder) && !existsSync(here) ? inFolder : here;
}

/** The environment variable that names the configuration, before the files that are looked for. */
export const configVariable = 'CRM_MIRROR_CONFIG';

const here = 'mirror.yaml';
const inFolder = 'config/mirror.yaml';

/** Returns whether a configuration has one of the names that need not be given. */
export function isUsual(config: string): boolean {
  return config === here || config === inFolder;
}

/**
 * Returns whether the file that is used if none is named is the example of the package, and not
 * what somebody made of it: another text, or, where it is changed in place, another mirror.
 */
export function findsExample(): boolean {
  if (defaultConfig() !== inFolder) return false;
  const shipped = readFileSync(new URL('../../../config/mirror.yaml', import.meta.url));
  return readFileSync(inFolder).equals(shipped) && shipped.includes('\nmirror: acme ');
}

/** Returns the option that names one configuration, or several. */
export function configOption(count: 'one' | 'several' = 'one'): Option {
  const either = `$${configVariable}, or else ${here}, or ${inFolder}`;
  if (count === 'one')
    return new Option('-c, --config <file>', 'the configuration').default(defaultConfig(), either);
  const about = 'the configuration; several: a mirror each';
  return new Option('-c, --config <file...>', about).default([defaultConfig()], either);
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Commands that read no configuration of a mirror. */
const without: ReadonlySet<string> = new Set(['init', 'demo', 'emulator', 'print', 'help']);

/** Returns a command line: `crm-mirror approve 539b73071770e947 -c m.yaml` */
export function commandLine(words: string, config: string): string {
  // The disk is asked only where the name can be the default.
  if (isUsual(config) && config === defaultConfig()) return `crm-mirror ${words}`;
  const file = /^[\w./-]+$/.test(config) ? config : JSON.stringify(config);
  return `crm-mirror ${words} -c ${file}`;
}

/** Adds the configuration, if any, to the commands that a text quotes as \`crm-mirror …\`. */
export function withConfig(text: string, config: string | undefined): string {
  if (config === undefined) return text;
  return text.replaceAll(/`crm-mirror ([a-z-]+)([^`]*)`/g, (quoted, name: string, rest: string) => {
    const isNamed = / (-c|--config)\b/.test(rest) || without.has(name) || rest === ' --help';
    return isNamed ? quoted : `\`${commandLine(`${name}${rest}`, config)}\``;
  });
}

/**
 * Names the program in printed commands as npm has found it, where a shell may not find it: in a
 * clone, or a project that has installed it. `names` are the first words of the commands.
 */
export function withCaller(text: string, names: readonly string[], env: Environment): string {
  if (env['npm_command'] === undefined) return text;
  const command = new RegExp(`(?<![\\w/.-]|npx )crm-mirror (?=(?:${names.join('|')})\\b)`, 'g');
  return text.replaceAll(command, 'npx crm-mirror ');
}
