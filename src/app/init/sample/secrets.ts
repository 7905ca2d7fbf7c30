/** Keeps secrets out of the configuration: they are written as `${NAME}`. */
import { interpolate } from '../../../config/yaml-document.ts';
import { Invalid } from '../../../domain/errors.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Returns the text with its `${NAME}` replaced. Throws Invalid if a variable is not set. */
export function withVariables(text: string, env: Environment): string {
  const { text: whole, missing, malformed } = interpolate(text, env);
  const [name] = missing;
  if (name !== undefined) {
    throw new Invalid(`the environment variable ${name} is not set`, { fix: 'set it' });
  }
  if (!malformed) return whole;
  throw new Invalid('a ${ is not understood', { fix: 'write ${NAME}' });
}

const secret = /auth|key|token|secret|passw|cookie|credential|session|signature/i;

/** Throws Invalid if the address holds a value that must not be written into a file. */
export function refuseSecretIn(address: string): void {
  for (const [name, value] of URL.parse(address)?.searchParams ?? []) {
    if (!secret.test(name) || value.includes('${')) continue;
    throw new Invalid(`${name} in the address would be written into the configuration`, {
      fix: `put it into the environment, and write ${name}=\${CRM_TOKEN}, in single quotes`,
    });
  }
}

/** Returns headers as the configuration states them, from texts such as `Accept: text/csv`. */
export function headersFrom(texts: readonly string[]): Record<string, string> {
  const pairs = texts.map((text): [string, string] => {
    const [, name, value = ''] = /^([^:\s]+)\s*:\s*(.+)$/s.exec(text) ?? [];
    if (name === undefined) {
      throw new Invalid('--header is not understood', { fix: "write 'NAME: VALUE'" });
    }
    if (secret.test(name) && !value.includes('${')) {
      throw new Invalid(`--header ${name} would write its secret into the configuration`, {
        fix: `put it into the environment, and write '${name}: \${CRM_TOKEN}', in single quotes`,
      });
    }
    return [name, value];
  });
  return Object.fromEntries(pairs);
}
