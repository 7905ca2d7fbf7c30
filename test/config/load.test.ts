import { join, resolve } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load-config.ts';
import { makeFolder, minimal } from '../support/config/config-folder.ts';

const { folder, write, load, mistakes, remove } = makeFolder();
afterAll(remove);

const platform = (fields: string) =>
  minimal().replace('url: https://api.example.com, apiKey: k', fields);
const url = (text: string) => platform(`url: "${text}", apiKey: k`);

describe('a valid file', () => {
  it('gets its defaults and absolute paths', () => {
    expect(load(minimal())).toEqual({
      file: join(folder, 'mirror.yaml'),
      mirror: 'acme',
      snapshot: join(folder, 'acme.sqlite'),
      memory: {
        path: join(folder, 'acme.sqlite-memory'),
        keyFile: join(folder, 'acme.sqlite-memory-key'),
      },
      platform: {
        url: 'https://api.example.com',
        apiKey: 'k',
        timeoutMs: 10_000,
        reserve: 0.1,
        allowHttp: false,
      },
      templates: { source: { type: 'directory', path: join(folder, 't') } },
      policy: {
        absent: 'opt_out',
        deletes: 'off',
        deleteAfterMs: 30 * 86_400_000,
        optIns: 'on',
        resubscribe: 'never',
        missing: 'respect',
        templates: 'keep',
        absentTemplates: 'keep',
      },
      guards: {
        deletes: { percent: 10, floor: 10 },
        optIns: { percent: 20, floor: 100 },
        optOuts: { percent: 30, floor: 20, holdForMs: 72 * 3600 * 1000 },
        templates: { percent: 20, floor: 3 },
        absentReadings: 2,
        absentForMs: 20 * 3600 * 1000,
      },
      rules: [],
      windows: [],
      keepMs: 90 * 24 * 3600 * 1000,
      alerts: {},
      audit: { keepMs: 1095 * 24 * 3600 * 1000 },
      requests: {
        isOn: true,
        keepMs: 14 * 24 * 3600 * 1000,
        bytes: 100_000_000,
      },
    });
  });

  it('can keep the key of the memory elsewhere', () => {
    const { memory } = load(minimal('memoryKeyFile: secrets/memory'));
    expect(memory).toEqual({
      path: join(folder, 'acme.sqlite-memory'),
      keyFile: join(folder, 'secrets/memory'),
    });
  });

  it('keeps every value it states', () => {
    const contacts = [
      'contacts:',
      '  source: { type: csv, path: /data/people.csv }',
      '  id: crm.id',
      '  email: Email',
      '  deleted: archived',
      '  unsubscribed: no_mail',
      '  consentAt: since',
      '  channels: [{ id: a, name: News, subscription: news }, { id: b, subscription: b }]',
      'policy: { missing: recreate, templates: overwrite, absentTemplates: archive }',
      'keep: 36h',
    ];
    const config = load(minimal(contacts.join('\n')));
    expect(config.contacts).toEqual({
      source: { type: 'csv', path: '/data/people.csv' },
      id: 'crm.id',
      email: 'Email',
      deleted: 'archived',
      unsubscribed: 'no_mail',
      consentAt: 'since',
      channels: [
        { id: 'a', name: 'News', subscription: 'news' },
        { id: 'b', subscription: 'b' },
      ],
    });
    const { missing, templates, absentTemplates } = config.policy;
    expect([missing, templates, absentTemplates]).toEqual(['recreate', 'overwrite', 'archive']);
    expect(config.keepMs).toBe(36 * 3600 * 1000);
  });

  it('is frozen', () => {
    const config = load(minimal());
    expect(Object.isFrozen(config)).toBe(true);
    expect(Object.isFrozen(config.platform)).toBe(true);
    expect(Object.isFrozen(config.templates?.source)).toBe(true);
  });

  it('has guards and times in milliseconds, some without end', () => {
    const { policy, guards } = load(
      minimal(
        'policy: { absent: opt_out, deletes: created }\n' +
          'guards: { deletes: { percent: 2.5, floor: 0 }, absentReadings: 3, absentFor: 90m,\n' +
          '  optOuts: { floor: 5, holdFor: 1d }, templates: { percent: 50 } }',
      ),
    );
    const days = 86_400_000;
    expect(policy).toMatchObject({
      absent: 'opt_out',
      deletes: 'created',
      deleteAfterMs: 30 * days,
    });
    expect(guards).toEqual({
      deletes: { percent: 2.5, floor: 0 },
      optIns: { percent: 20, floor: 100 },
      optOuts: { percent: 30, floor: 5, holdForMs: 86_400_000 },
      templates: { percent: 50, floor: 3 },
      absentReadings: 3,
      absentForMs: 90 * 60_000,
    });
    expect(() => Object.assign(guards.deletes, { floor: 1 })).toThrow(TypeError);
  });

  it('can delete people at once, and opt them out after a single reading', () => {
    const { policy, guards } = load(
      minimal('policy: { deleteAfter: 0s }\nguards: { absentReadings: 1, absentFor: 0s }'),
    );
    expect([policy.deleteAfterMs, guards.absentReadings, guards.absentForMs]).toEqual([0, 1, 0]);
    expect(policy).toMatchObject({ absent: 'opt_out' });
    expect(load(minimal('policy: { absent: keep }')).policy.absent).toBe('keep');
  });

  it('can name a Redis; an empty variable names none', () => {
    const redis = (env: Record<string, string>) =>
      load(minimal('redis: ${REDIS_URL:-}'), env).redis;
    expect(redis({})).toBeUndefined();
    expect(redis({ REDIS_URL: '' })).toBeUndefined();
    for (const url of ['redis://10.0.0.1:6379/2', 'rediss://ann:secret@redis.example.com']) {
      expect(redis({ REDIS_URL: url })).toBe(url);
    }
  });

  it('can have empty sections and a byte order mark', () => {
    expect(load(`\ufeff${minimal('policy:\nguards:\nredis:\n')}`).policy.deletes).toBe('off');
  });

  it('is the example with a key', () => {
    const config = loadConfig('config/mirror.yaml', { PLATFORM_API_KEY: 'k' });
    expect(config.platform.url).toBe('http://127.0.0.1:4010');
    expect(config.snapshot).toBe(resolve('var/acme.sqlite'));
    expect(config.contacts?.source).toEqual({
      type: 'csv',
      path: resolve('config/demo/people.csv'),
    });
    expect(config.contacts?.channels.map(({ id }) => id)).toEqual(['ch_news', 'ch_product']);
    expect(config.policy).toEqual(load(minimal()).policy);
    expect(config.keepMs).toBe(load(minimal()).keepMs);
  });
});

describe('the address of the platform', () => {
  const userinfo = 'holds a user or password  → move the key to apiKey';
  const query = 'holds a query or fragment  → end it before the ? or #';
  const plain = 'would send the key unencrypted  → use https, or add allowHttp: true';
  const none = 'is no web address  → write https://HOST';

  it.each([
    ['https://api.example.com/', 'https://api.example.com'],
    ['https://API.example.com:443', 'https://api.example.com'],
    ['https://example.com/mail/v2//', 'https://example.com/mail/v2'],
    ['http://localhost:4010', 'http://localhost:4010'],
    ['http://127.3.2.1/x/', 'http://127.3.2.1/x'],
    ['http://[::1]:80', 'http://[::1]'],
  ])('%s is %s', (text, expected) => expect(load(url(text)).platform.url).toBe(expected));

  it.each([
    ['http://example.com', [plain]],
    ['http://127.example.com', [plain]],
    ['http://127.0.0.1.example.com', [plain]],
    ['http://localhost.example.com', [plain]],
    ['http://10.0.0.1', [plain]],
    ['http://[::2]', [plain]],
    ['https://me@example.com', [userinfo]],
    ['http://me:pw@example.com', [userinfo, plain]],
    ['https://example.com/?a=1', [query]],
    ['https://example.com?', [query]],
    ['https://example.com/#a', [query]],
    ['ftp://example.com', [none]],
    ['example.com', [none]],
    ['', [none]],
  ])('%s is refused', (text, expected) => {
    const lines = expected.map((line) => `mirror.yaml:3:18  platform.url  ${line}`);
    expect(mistakes(url(text))).toEqual(lines);
  });

  it('can be plain http when the file allows it', () => {
    const config = load(platform('url: http://10.0.0.1, apiKey: k, allowHttp: true'));
    expect(config.platform.url).toBe('http://10.0.0.1');
  });
});

describe('the key in a file of its own', () => {
  const withFile = (name: string) => platform(`url: https://x.example, apiKeyFile: ${name}`);

  it('is read and trimmed', () => {
    write('key', ' sk_1\n');
    const { apiKey, apiKeyFile } = load(withFile('key')).platform;
    expect({ apiKey, apiKeyFile }).toEqual({ apiKey: 'sk_1', apiKeyFile: join(folder, 'key') });
  });

  it.each([
    ['absent', 'names a file that cannot be read (ENOENT)  → make it readable, or mend the path'],
    ['.', 'names a file that cannot be read (EISDIR)  → make it readable, or mend the path'],
    ['empty', 'names an empty file  → write the key into it'],
    ['two', 'names a file that holds more than a key  → write the key alone into it'],
  ])('%s is reported with its place', (name, expected) => {
    write('empty', ' \n');
    write('two', 'sk_secret\nsk_secret\n');
    const line = `mirror.yaml:3:49  platform.apiKeyFile  ${expected}`;
    expect(mistakes(withFile(name))).toEqual([line]);
  });

  it('replaces apiKey: stating both is a mistake', () => {
    write('key', 'sk_1');
    expect(mistakes(platform('url: https://x.example'))).toEqual([
      'mirror.yaml:3:1  platform.apiKey  is missing  → add it, or apiKeyFile',
    ]);
    expect(mistakes(platform('url: https://x.example, apiKey: a, apiKeyFile: key'))).toEqual([
      'mirror.yaml:3:60  platform.apiKeyFile  stands beside apiKey  → keep one of the two',
    ]);
  });
});

describe('a file that cannot be a configuration', () => {
  it('is missing', () => {
    expect(() => loadConfig('nowhere/mirror.yaml', {})).toThrow(
      'nowhere/mirror.yaml  no such file' +
        '  → name the configuration with -c FILE; `crm-mirror init FILE` writes one',
    );
  });

  it('is a folder', () => {
    expect(() => loadConfig(folder, {})).toThrow(/ {2}cannot be read \(EISDIR\) {2}→ name the /);
  });

  const empty = '1:1  is empty  → name another with -c FILE; `crm-mirror init FILE` writes one';
  const noMap = 'is not a mapping  → write "name: value" lines; `crm-mirror init FILE` writes one';
  const encoding = 'is not UTF-8  → save it as UTF-8';
  it.each<[string, string | Uint8Array, string]>([
    ['empty', '', empty],
    ['only a comment', '# nothing\n', empty],
    ['null', '~', empty],
    ['a list', '\n- a\n', `2:1  ${noMap}`],
    ['a text', 'id,email\n1,a@example.com', `1:1  ${noMap}`],
    ['Latin-1', Buffer.from('a: b\nmirror: caf\xe9\n', 'latin1'), `2:12  ${encoding}`],
    ['UTF-16', Buffer.from('\ufeffmirror: a', 'utf16le'), `1:1  ${encoding}`],
    [
      'huge',
      `a: ${'b'.repeat(1 << 20)}`,
      '1:1  is larger than any configuration  → name the right file with -c FILE',
    ],
  ])('%s', (_, content, expected) => {
    expect(mistakes(content)).toEqual([`mirror.yaml:${expected}`]);
  });
});
