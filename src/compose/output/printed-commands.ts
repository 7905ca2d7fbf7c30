/**
 * Knows where the configuration is unless a command names one, and writes commands that a user can
 * copy: they name it unless it is there.
 */
import { existsSync } from 'node:fs';
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

/** Returns the option that names one configuration, or several. */
export function configOption(count: 'one' | 'several' = 'one'): Option {
  const either = `$${configVariable}, or else ${here}, or ${inFolder}`;
  if (count === 'one')
    return new Option('-c, --config <file>', 'the configuration').default(defaultConfig(), either);
  const about = 'the configuration; several: a mirror each';
  return new Option('-c, --config <file...>', about).default([defaultConfig()], either);
}

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
