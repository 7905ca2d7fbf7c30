/** `${NAME}` and `${NAME:-default}` in a text; `$${` stands for a plain `${`. */

interface Interpolated {
  text: string;
  /** The variables it names, whether they are set or not. */
  variables: string[];
  /** Names without a value and without a default. An empty variable counts as none, as with :-. */
  missing: string[];
  /** Whether a `${` in it cannot be understood. */
  malformed: boolean;
}

const reference = /\$\$\{|\$\{(?:([A-Za-z_]\w*)(?::-([^{}]*))?\})?/g;

/** Replaces what the text names by its value in `env`; a value is never looked into again. */
export function interpolate(text: string, env: Record<string, string | undefined>): Interpolated {
  const found: Interpolated = { text, variables: [], missing: [], malformed: false };
  found.text = text.replace(reference, (whole: string, name?: string, standard?: string) => {
    if (whole === '$${') return '${';
    if (name === undefined) {
      found.malformed = true;
      return whole;
    }
    found.variables.push(name);
    const value = (Object.hasOwn(env, name) && env[name]) || standard;
    if (value === undefined) found.missing.push(name);
    return value ?? '';
  });
  return found;
}

/**
 * Between YAML and `${…}` there is one quarrel: `{ token: ${TOKEN:-} }` opens a mapping to YAML.
 * So its characters are exchanged, one for one to keep every position, for noncharacters that no
 * text may hold, and back in each text that was read.
 */
const quarrelsome = '{}[],:#';
const veil = 0xfdd0;

export function mask(yaml: string): string {
  const hide = (char: string) => String.fromCharCode(veil + quarrelsome.indexOf(char));
  return yaml.replace(/\$\{[^{}\n]*\}/g, (whole) => whole.replace(/[{}[\],:#]/g, hide));
}

export function unmask(text: string): string {
  return text.replace(/[\ufdd0-\ufdd6]/g, (char) => quarrelsome.charAt(char.charCodeAt(0) - veil));
}
