import { afterAll, describe, expect, it } from 'vitest';
import { makeFolder, minimal } from '../support/config/config-folder.ts';

const { load, mistakes, remove } = makeFolder();
afterAll(remove);

const contacts = (lines: string) =>
  minimal(`contacts:\n  source: { type: csv, path: p }\n  id: i\n  email: e\n${lines}`);
const channels = '  channels: [{ id: a, subscription: s }]';

describe('variables', () => {
  it.each([
    ['mirror: ${M}', { M: 'a' }, 'a'],
    ['mirror: ${M:-b}', {}, 'b'],
    ['mirror: ${M:-b}', { M: '' }, 'b'],
    ['mirror: x-${M}-${N:-c}', { M: 'a' }, 'x-a-c'],
    ['mirror: "${M}"', { M: '12' }, '12'],
    ["mirror: '${M}'", { M: 'a' }, 'a'],
  ])('%s with %j', (line, env, expected) => {
    expect(load(minimal().replace('mirror: acme', line), env).mirror).toBe(expected);
  });

  it.each([
    ['$${HOME}', '${HOME}'],
    ['a$$b', 'a$$b'],
    ['$HOME', '$HOME'],
    ['${P}', '${Q}'],
    ['"${R:-a,b: #1}"', 'a,b: #1'],
    ['${R:-[a], b:# c}', '[a], b:# c'],
  ])('%s in a path', (path, expected) => {
    const content = minimal().replace('path: t', () => `path: ${path}`);
    const found = load(content, { P: '${Q}', HOME: 'no' }).templates?.source;
    expect(found && 'path' in found && found.path.endsWith(`/${expected}`)).toBe(true);
  });

  it('can be numbers and booleans where those are expected', () => {
    const fields = 'timeoutMs: ${T}, reserve: ${R:-0.5}, allowHttp: ${H:-true}';
    const content = minimal()
      .replace('apiKey: k', `apiKey: "\${K}", ${fields}`)
      .replace('https:', 'http:');
    const { apiKey, timeoutMs, reserve, url } = load(content, { K: '123', T: '250' }).platform;
    expect([apiKey, timeoutMs, reserve, url]).toEqual(['123', 250, 0.5, 'http://api.example.com']);
  });

  it('count as absent when they are empty', () => {
    expect(mistakes(minimal('redis: ${REDIS_URL:-}\nkeep: ${KEEP:-}'))).toBeUndefined();
    expect(mistakes(minimal('redis: ${REDIS_URL:-}'), { REDIS_URL: '' })).toBeUndefined();
    expect(mistakes(minimal().replace('mirror: acme', 'mirror: ${M:-}'))).toEqual([
      'mirror.yaml:1:1  mirror  is missing  → add "mirror: …"' +
        ' (Name of the mirror: 1 to 40 characters of a-z, 0-9 and -)',
    ]);
  });

  it.each(['${}', '${1A}', '${A-b}', '${A', '${A:-${B}}'])('%s is not understood', (text) => {
    const content = minimal(`keep: ${JSON.stringify(text)}`);
    expect(mistakes(content, { A: 'a', B: 'b' })).toEqual([
      'mirror.yaml:6:7  keep  holds a ${ that is not understood' +
        '  → write ${NAME} or ${NAME:-default}, or $${ for a plain ${',
    ]);
  });

  it.each(['NOT_SET', 'EMPTY', 'constructor', '__proto__'])('%s is missing', (name) => {
    expect(mistakes(minimal(`keep: a \${${name}}`), { EMPTY: '' })).toEqual([
      `mirror.yaml:6:7  keep  the environment variable ${name} is not set` +
        `  → set it, or write \${${name}:-default} here`,
    ]);
  });
});

describe('no mistake prints the value of a variable', () => {
  const secret = 'sk_live_topsecret';
  const file = contacts(channels).replace('url: https://api.example.com', 'url: u, timeoutMs: 5');
  const places = [...file.matchAll(/: ([\w./]+)/g)].map((match) => match.index + 2);

  it.each(places)('at offset %i', (offset) => {
    const rest = file.slice(offset).replace(/^[\w./]+/, '');
    const env = { S: `${secret} : {` };
    const inFile = mistakes(`${file.slice(0, offset)}{ a: ${secret} }${rest}`, env);
    const inEnv = mistakes(`${file.slice(0, offset)}\${S}${rest}`, env);
    expect(inFile?.length).toBeGreaterThan(0);
    expect([...(inFile ?? []), ...(inEnv ?? [])].join('\n')).not.toContain('sk_live');
  });

  it.each([
    `apiKey: "${secret}`,
    `${secret}: a: b`,
    `a: @${secret}`,
    `- a\n${secret}: b`,
    `a: *${secret}`,
  ])('in broken YAML: %j', (content) =>
    expect(mistakes(content)?.join('\n')).not.toContain('sk_live'),
  );
});
