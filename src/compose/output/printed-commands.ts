/** Writes commands that a user can copy: they name the configuration unless it is the default. */

/** The configuration that a command uses if none is named. */
export const defaultConfig = 'config/mirror.yaml';

/** Commands that read no configuration of a mirror. */
const without: ReadonlySet<string> = new Set(['init', 'demo', 'emulator', 'schema', 'help']);

/** Returns a command line: `crm-mirror approve 539b73071770e947 -c m.yaml` */
export function commandLine(words: string, config: string): string {
  if (config === defaultConfig) return `crm-mirror ${words}`;
  const file = /^[\w./-]+$/.test(config) ? config : JSON.stringify(config);
  return `crm-mirror ${words} -c ${file}`;
}

/** Adds the configuration to the commands that a text quotes as \`crm-mirror …\`. */
export function withConfig(text: string, config: string): string {
  return text.replaceAll(/`crm-mirror ([a-z-]+)([^`]*)`/g, (quoted, name: string, rest: string) => {
    const isNamed = / (-c|--config)\b/.test(rest) || without.has(name) || rest === ' --help';
    return isNamed ? quoted : `\`${commandLine(`${name}${rest}`, config)}\``;
  });
}
