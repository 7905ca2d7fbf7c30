/**
 * Finds the position at which a text stops being JSON, because JSON.parse does not always report
 * it.
 */

/**
 * Returns the offset of the first invalid token, or the length of the text if it merely ends early.
 */
export function faultAt(text: string): number {
  const open: Bracket[] = [];
  let expected: Expected = 'value';
  let end = 0;
  for (;;) {
    const start = spaceEnd(text, end);
    const token = tokenAt(text, start);
    if (token === undefined) return start;
    if ('fault' in token) return token.fault;
    const next = step(expected, token, open);
    if (next === undefined) return start;
    expected = next;
    end = token.end;
  }
}

type Bracket = '{' | '[';
type Expected = 'value' | 'value or ]' | 'key' | 'key or }' | 'colon' | 'comma or end';

/** A string, another scalar, or one of the six punctuation marks. */
interface Token {
  kind: string;
  end: number;
}

const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const SPACE = /[ \t\n\r]*/y;
/**
 * Matches a bounded part of a string. Without the bound, a long string exhausts the regex engine.
 */
const STRETCH = /[ !#-[\]-\uffff]{1,500}|\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y;

function tokenAt(text: string, start: number): Token | { fault: number } | undefined {
  const first = text[start];
  if (first === undefined) return undefined;
  if ('{}[],:'.includes(first)) return { kind: first, end: start + 1 };
  if (first !== '"') {
    const end = matchEnd(SCALAR, text, start);
    return end === undefined ? undefined : { kind: 'scalar', end };
  }
  const at = stringEnd(text, start + 1);
  if (text[at] === '"') return { kind: 'string', end: at + 1 };
  // For an unclosed quote, the opening position is the most useful one to report.
  return { fault: at === text.length ? start : at };
}

/** Returns the offset at which the characters and escapes of a string end. */
function stringEnd(text: string, from: number): number {
  let at = from;
  for (;;) {
    const end = matchEnd(STRETCH, text, at);
    if (end === undefined) return at;
    at = end;
  }
}

function spaceEnd(text: string, from: number): number {
  return matchEnd(SPACE, text, from) ?? from;
}

function matchEnd(sticky: RegExp, text: string, from: number): number | undefined {
  sticky.lastIndex = from;
  return sticky.test(text) ? sticky.lastIndex : undefined;
}

/**
 * Returns what may follow a token, and opens or closes brackets. Returns undefined if the token is
 * not allowed in this position.
 */
function step(expected: Expected, { kind }: Token, open: Bracket[]): Expected | undefined {
  const inside = open.at(-1);
  if (kind === '}' || kind === ']') {
    const empty = kind === '}' ? 'key or }' : 'value or ]';
    const fits = inside === (kind === '}' ? '{' : '[');
    if (!fits || (expected !== 'comma or end' && expected !== empty)) return undefined;
    open.pop();
    return 'comma or end';
  }
  if (expected === 'value' || expected === 'value or ]') {
    if (kind === 'string' || kind === 'scalar') return 'comma or end';
    if (kind !== '{' && kind !== '[') return undefined;
    open.push(kind);
    return kind === '{' ? 'key or }' : 'value or ]';
  }
  if (expected === 'colon') return kind === ':' ? 'value' : undefined;
  if (expected === 'comma or end') {
    if (kind !== ',' || inside === undefined) return undefined;
    return inside === '{' ? 'key' : 'value';
  }
  return kind === 'string' ? 'colon' : undefined;
}
