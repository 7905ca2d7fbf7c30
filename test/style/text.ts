import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A file of the project: its path from the root, and what stands in it. */
export interface FileText {
  path: string;
  text: string;
}

/** What breaks a rule: where (an offset into the text), and what stands there. */
export interface Finding {
  offset: number;
  what: string;
}

/**
 * One rule. `planted` breaks it once and `harmless` looks as if it did: so that a rule which finds
 * nothing, or too much, is found out itself.
 */
export interface Rule {
  name: string;
  mend: string;
  applies(path: string): boolean;
  find(file: FileText): Finding[];
  planted: readonly FileText[];
  harmless: readonly FileText[];
}

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The project's texts; data (exports of a CRM, lockfiles, generated files) is not among them. */
export function readProject(): FileText[] {
  const tops = readdirSync(root, { withFileTypes: true });
  const folders = ['.ci', 'bench', 'bin', 'config', 'docs', 'src', 'test'];
  const paths = tops.flatMap((top) => {
    if (top.isFile()) return [top.name];
    return folders.includes(top.name) ? filesUnder(top.name) : [];
  });
  return paths
    .filter((path) => /(\.(ts|mjs|md|ya?ml)|package\.json|Dockerfile|^\.ci\/run)$/.test(path))
    .toSorted()
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
}

function filesUnder(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length));
}

/** `src/a.ts:12  rule: what stands there → mend`, a line for every breach of the rule. */
export function breaches(rule: Rule, files: readonly FileText[]): string[] {
  return files
    .filter(({ path }) => rule.applies(path))
    .flatMap((file) =>
      rule.find(file).map(({ offset, what }) => {
        const line = file.text.slice(0, offset).split('\n').length;
        return `${file.path}:${line}  ${rule.name}: ${what} → ${rule.mend}`;
      }),
    );
}

/** Every match of a global pattern as a finding, named by what matched. */
export function matches(pattern: RegExp, text: string): Finding[] {
  return [...text.matchAll(pattern)].map((match) => ({
    offset: match.index,
    what: match[0].trim(),
  }));
}

const tokens = {
  comment: /\/\/[^\n]*|\/\*[\s\S]*?\*\//y,
  string: /'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*"/y,
  template: /`(?:[^`\\$]|\\[\s\S]|\$(?!\{))*(?:`|\$\{)/y,
  continued: /\}(?:[^`\\$]|\\[\s\S]|\$(?!\{))*(?:`|\$\{)/y,
  pattern: /\/(?![*/])(?:[^\\/[\n]|\\.|\[(?:[^\\\]\n]|\\.)*\])+\/[a-z]*/y,
  plain: /[\w$]+|[^]/y,
};
const beforePattern =
  /^(?:[^\w$)\]}]|return|typeof|case|in|of|void|delete|await|yield|throw|else)$/;

/**
 * The code of a TypeScript text: comments, and what stands in strings, templates and patterns, are
 * spaces of the same length; quotes and offsets stay. Templates may hold code, and templates again.
 */
export function codeOf(text: string): string {
  let code = '';
  let last = ';';
  const braces: string[] = [];
  while (code.length < text.length) {
    const { kind, token } = tokenAt(text, code.length, {
      pattern: beforePattern.test(last),
      continued: braces.at(-1) === '${',
    });
    code += shownOf(kind, token);
    if (kind !== 'comment' && token.trim() !== '') last = kind === 'plain' ? token : ')';
    if (kind === 'continued' || token === '}') braces.pop();
    if (token === '{') braces.push('{');
    if (/^(template|continued)$/.test(kind) && token.endsWith('${')) {
      braces.push('${');
      last = '(';
    }
  }
  return code;
}

type Kind = keyof typeof tokens;

/** The token that begins at `from`; some kinds are possible only after certain others. */
function tokenAt(
  text: string,
  from: number,
  possible: { pattern: boolean; continued: boolean },
): { kind: Kind; token: string } {
  const kinds: Kind[] = ['comment', 'string', 'template'];
  if (possible.continued) kinds.push('continued');
  if (possible.pattern) kinds.push('pattern');
  for (const kind of kinds) {
    tokens[kind].lastIndex = from;
    const token = tokens[kind].exec(text)?.[0];
    if (token) return { kind, token };
  }
  tokens.plain.lastIndex = from;
  return { kind: 'plain', token: tokens.plain.exec(text)?.[0] ?? '' };
}

function shownOf(kind: Kind, token: string): string {
  if (kind === 'plain') return token;
  const blank = token.replaceAll(/[^\n]/g, ' ');
  if (kind === 'comment') return blank;
  const edge = token.endsWith('${') ? 2 : 1;
  return token.charAt(0) + blank.slice(1, -edge) + token.slice(-edge);
}

/** Whether every bracket closes the one it should: if not, codeOf has lost its way in this text. */
export function isBalanced(code: string): boolean {
  const open: string[] = [];
  const closes: Record<string, string> = { ')': '(', ']': '[', '}': '{' };
  for (const [char] of code.matchAll(/[()[\]{}]/g)) {
    const opening = closes[char];
    if (opening === undefined) open.push(char);
    else if (open.pop() !== opening) return false;
  }
  return open.length === 0;
}
