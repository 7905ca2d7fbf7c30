import fs, { linkSync, mkdirSync, symlinkSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { makeFolder, minimal } from '../support/config/config-folder.ts';

const { mistakes, remove } = makeFolder();
afterAll(remove);

const contacts = (lines: string) =>
  minimal(`contacts:\n  source: { type: csv, path: p }\n  id: i\n  email: e\n${lines}`);
const channels = '  channels: [{ id: a, subscription: s }]';
const timeOut = ' (Time-out of a request, in milliseconds)';
const atLeastOne = ' (Channels to keep equal, at least one)';

describe('YAML itself', () => {
  it.each([
    ['mirror: a\n\tx: 1\nb: 2', '2:1  a tab is used to indent  → use spaces'],
    [
      'a:\n  - b\n c: 1',
      '3:1  the indentation does not fit the lines above  → indent by two spaces a level',
    ],
    [
      'a: b: c',
      '1:4  a key stands where the value above or before it goes on' +
        '  → indent keys of one level alike, and quote values that hold ": "',
    ],
    ['a: "x', '1:6  a quote, bracket or colon is missing  → close what was opened'],
    ['a: @secret', '1:4  a value may not begin with this character  → put the value in quotes'],
    ['a: "\\q"', '1:5  an unknown escape stands in double quotes  → use single quotes'],
    ['a: 1\n---\nb: 2', '2:1  a second document begins  → keep one mirror in a file, without ---'],
    ['a: !env X', '1:4  a tag (!name) is not known here  → remove it'],
    ['a: [1]]', '1:7  is no valid YAML here  → see config/mirror.yaml'],
  ])('%j', (content, expected) => {
    expect(mistakes(content)).toEqual([`mirror.yaml:${expected}`]);
  });

  it('reports every broken line once', () => {
    const lines = mistakes('a: b: c\nd: @x\ne: [`, @]\n') ?? [];
    expect(lines.map((line) => line.split('  ')[0])).toEqual([
      'mirror.yaml:1:4',
      'mirror.yaml:2:4',
      'mirror.yaml:3:5',
    ]);
  });
});

const noRedis =
  '6:8  redis  is no address of a Redis  ' +
  '→ write redis://HOST:PORT, or rediss:// with encryption; a % in a password as %25';
const noPattern =
  'is no cron pattern  → write five fields (minute hour day month weekday), or six with seconds before them';

describe('one mistake', () => {
  it.each([
    ['mirror: b', '6:1  mirror  is already given in line 1  → keep one of the two'],
    ...['localhost:6379', 'http://localhost', 'redis://', "''", '"redis://:pa%ss@host:6379"'].map(
      (value): [string, string] => [`redis: ${value}`, noRedis],
    ),
    ['redis: 12', '6:8  redis  is not a text  → put it in quotes'],
    ['keep: &k 90d\nredis: *k', '7:8  redis  is an alias  → write the value out'],
    ['? [a]\n: 1', '6:3  "?"  is no plain key  → write "name: value"'],
    ['contact: 1', '6:1  contact  is not known here  → did you mean contacts?'],
    ['polcy: {}', '6:1  polcy  is not known here  → did you mean policy?'],
    ['__proto__: { x: 1 }', '6:1  __proto__  is not known here  → KNOWN'],
    ['constructor: 1', '6:1  constructor  is not known here  → KNOWN'],
    ['"a → b": 1', '6:1  "a → b"  is not known here  → KNOWN'],
    ['policy: { mising: keep }', '6:11  policy.mising  is not known here  → did you mean missing?'],
    [
      'policy: keep',
      '6:9  policy  is not a mapping  → write "name: value" lines (What to do if the CRM and the platform disagree)',
    ],
    ['policy: {missing: x}', '6:19  policy.missing  is not known here  → use respect or recreate'],
    ['policy: { missing: }', undefined],
    ['keep: 0d', '6:7  keep  must be greater than 0  → write 1s or more'],
    ['keep: 90', '6:7  keep  is not a text  → put it in quotes'],
    ['schedule: { full: "0 3 * * *", fast: "*/5 * * * * *", templates: ~ }', undefined],
    ['schedule: { sentinel: ~ }', undefined],
    [
      'schedule: { sentinel: "* * * * *" }',
      '6:23  schedule.sentinel  checks for unsubscribed contacts, and there are no contacts  → remove it, or add contacts',
    ],
    ['schedule: { full: "0 3 * *" }', `6:19  schedule.full  ${noPattern}`],
    ['schedule: { fast: "61 * * * *" }', `6:19  schedule.fast  ${noPattern}`],
    [
      'schedule: { timezone: Mars/Base }',
      '6:23  schedule.timezone  is no time zone  → write one such as Europe/Berlin, or UTC',
    ],
    [
      'ledgerKeyFile: data/key',
      '6:1  ledgerKeyFile  is not known here  → name the file of the one key of the memory as memoryKeyFile',
    ],
    [
      'audit: { keyFile: data/key }',
      '6:10  audit.keyFile  is not known here  → name the file of the one key of the memory as memoryKeyFile',
    ],
    ['keep: 1000000d', '6:7  keep  is not a duration  → write a number and s, m, h or d: 90d'],
  ])('%s', (extra, expected) => {
    const known =
      'known here: mirror, snapshot, memoryKeyFile, platform, contacts, templates, policy, ' +
      'guards, rules, windows, keep, audit, requests, schedule, redis, server, notices, alerts';
    const lines = expected && [`mirror.yaml:${expected.replace('KNOWN', known)}`];
    expect(mistakes(minimal(extra))).toEqual(lines);
  });

  it.each([
    ['timeoutMs: 0', 'platform.timeoutMs  is below 1  → write 1 or more'],
    ['timeoutMs: 600001', 'platform.timeoutMs  is above 600000  → write 600000 or less'],
    [
      'timeoutMs: 1.5',
      `platform.timeoutMs  is not a whole number  → write a whole number${timeOut}`,
    ],
    ['timeoutMs: .inf', `platform.timeoutMs  is not a number  → write a number${timeOut}`],
    ['reserve: 0.91', 'platform.reserve  is above 0.9  → write 0.9 or less'],
    ['reserve: -0.1', 'platform.reserve  is below 0  → write 0 or more'],
    [
      'allowHttp: maybe',
      'platform.allowHttp  is not true or false  → write true or false' +
        ' (Allows plain HTTP to another machine)',
    ],
  ])('platform %s', (line, expected) => {
    const content = minimal().replace('apiKey: k', `apiKey: k, ${line}`);
    const col = 54 + line.indexOf(': ') + 2;
    expect(mistakes(content)).toEqual([`mirror.yaml:3:${col}  ${expected}`]);
  });

  it.each([
    ['', `6:1  contacts.channels  is missing  → add "channels: …"${atLeastOne}`],
    ['  channels: []', `10:13  contacts.channels  is empty  → fill it${atLeastOne}`],
    [
      '  channels: { id: a }',
      `10:13  contacts.channels  is not a list  → write "- entry" lines${atLeastOne}`,
    ],
    [
      '  channels: [a]',
      '10:14  contacts.channels[0]  is not a mapping  → write "name: value" lines' +
        ' (One channel: its id and the subscription field)',
    ],
    ['  channels:\n    -', '11:6  contacts.channels[0]  is empty  → fill the entry or remove it'],
    [
      '  channels: [{ id: a }]',
      '10:14  contacts.channels[0].subscription  is missing' +
        '  → add "subscription: …" (Column or dotted path of the CRM record:' +
        ' whether this person wants the channel; or a field with its own words, or a condition,' +
        ' or a column of opt-outs)',
    ],
    [
      '  channels: [{ id: a, subscription: s }, { id: a, subscription: t }]',
      '10:48  contacts.channels[1].id  is the id of an earlier channel too' +
        '  → keep one of the two',
    ],
    [
      '  channels: [{ id: a, subscription: s, replaces: a }]',
      '10:50  contacts.channels[0].replaces  names the channel itself' +
        '  → name the one it took over from',
    ],
    [
      '  channels: [{ id: a, subscription: s, replaces: b }, { id: b, subscription: t }]',
      '10:50  contacts.channels[0].replaces  names a channel that is kept equal itself' +
        '  → remove that one from the list, or this',
    ],
    [
      `${channels}\n  deleted: ''`,
      '11:12  contacts.deleted  is empty  → fill it (Column or dotted' +
        ' path of the CRM record: yes if the CRM flags this person as deleted; or a field with its own words, or a condition)',
    ],
  ])('contacts with %j', (lines, expected) => {
    expect(mistakes(contacts(lines))).toEqual([`mirror.yaml:${expected}`]);
  });

  it.each([
    [
      '{ type: xml, path: p }',
      '7:19  contacts.source.type  is not known here  → use csv or xlsx or ndjson or http or hubspot or salesforce or sql',
    ],
    [
      '{ path: p }',
      '7:3  contacts.source.type  is missing  → add "type: csv"' +
        ' (A CSV file with a header row)',
    ],
    [
      'people.csv',
      '7:11  contacts.source  is not a mapping  → write "name: value" lines' +
        ' (Where the CRM records come from)',
    ],
    [
      '{ type: csv }',
      '7:3  contacts.source.path  is missing  → add "path: …"' +
        ' (Path of the file, relative to the configuration file; or an https address; or - for standard input)',
    ],
    [
      '{ type: csv, path: p, header: x }',
      '7:33  contacts.source.header  is not known here  → did you mean headers?',
    ],
    [
      '{ type: csv, path: p, delimiter: x }',
      '7:44  contacts.source.delimiter  is not known here  → use , or ; or \\t or | or tab',
    ],
  ])('a source %s', (source, expected) => {
    const content = contacts(channels).replace('{ type: csv, path: p }', source);
    const at = Number(expected.split(':')[1]?.split(' ')[0]);
    expect(mistakes(content)?.map((line) => line.replace(/^mirror.yaml:/, ''))).toEqual([expected]);
    expect(at).toBeGreaterThan(0);
  });

  it('is a file with neither contacts nor templates', () => {
    expect(mistakes(minimal().replace(/templates.*/, ''))).toEqual([
      'mirror.yaml:1:1  contacts  is missing, and so is templates  → add at least one of the two',
    ]);
  });
});

describe('several mistakes', () => {
  const content = [
    'mirror: Acme Corp',
    'mirror: acme',
    'platform:',
    '  url: ${URL}',
    '  apiKey: ${KEY}',
    '  timeout: 3',
    'contacts:',
    '  source: { type: csv, path: [p] }',
    '  emial: e',
    '  id: i',
    '  channels:',
    '    - { id: 1, subscription: s }',
    '  webhook: { format: fax }',
    'policy: { deletes: all }',
  ];

  it('are reported together, in the order of the file', () => {
    expect(mistakes(content.join('\n'), { URL: 'http://example.com' })).toEqual([
      'mirror.yaml:1:1  snapshot  is missing  → add "snapshot: …"' +
        ' (Path of the snapshot file, relative to the configuration file)',
      'mirror.yaml:2:1  mirror  is already given in line 1  → keep one of the two',
      'mirror.yaml:4:8  platform.url  would send the key unencrypted (it comes from ${URL})' +
        '  → use https, or add allowHttp: true',
      'mirror.yaml:5:11  platform.apiKey  the environment variable KEY is not set' +
        '  → set it, or write ${KEY:-default} here',
      'mirror.yaml:6:3  platform.timeout  is not known here  → did you mean timeoutMs?',
      'mirror.yaml:7:1  contacts.email  is missing  → add "email: …"' +
        ' (Column or dotted path of the CRM record: the email address)',
      'mirror.yaml:8:30  contacts.source.path  is not a text  → write a text' +
        ' (Path of the file, relative to the configuration file; or an https address; or - for standard input)',
      'mirror.yaml:9:3  contacts.emial  is not known here  → did you mean email?',
      'mirror.yaml:12:13  contacts.channels[0].id  is not a text  → put it in quotes',
      'mirror.yaml:13:3  contacts.webhook.secret  is missing  → add "secret: …"' +
        ' (Secret with which the CRM signs its events)',
      'mirror.yaml:13:12  contacts.webhook  needs a source that reads a single record' +
        '  → use http with `one`, hubspot, salesforce or sql, or remove it',
      'mirror.yaml:13:22  contacts.webhook.format  is not known here  → use standard or hubspot',
      'mirror.yaml:14:20  policy.deletes  is not known here  → use off or created or owned',
    ]);
  });
});

describe('a file that two options name', () => {
  const { folder, load, write, mistakes: found, remove: removeAll } = makeFolder();
  afterAll(removeAll);
  write('people.csv', 'i,e');
  write('key', 'k');
  mkdirSync(join(folder, 't'));
  symlinkSync('people.csv', join(folder, 'link.csv'));
  linkSync(join(folder, 'people.csv'), join(folder, 'hard.csv'));
  symlinkSync('.', join(folder, 'here'));
  const file = (lines: string, source = '{ type: csv, path: people.csv }') =>
    contacts(`${channels}\n${lines}`)
      .replace('{ type: csv, path: p }', source)
      .replace(/(apiKey): k/, lines.includes('apiKeyFile') ? '$1File: key' : '$1: k');
  const returns = (path: string) => `  returns: { type: csv, path: ${path} }`;
  const snapshot = (path: string, source?: string) =>
    file('# apiKeyFile', source).replace('acme.sqlite', path);
  const sqlite = '{ type: sql, url: sqlite:crm.db, table: people }';

  it.each([
    [snapshot('mirror.yaml'), 'snapshot', 'the configuration'],
    [snapshot('./here/defaults.yaml'), 'snapshot', 'the configuration'],
    [snapshot('key'), 'snapshot', 'platform.apiKeyFile'],
    [snapshot('people.csv'), 'snapshot', 'contacts.source'],
    [snapshot('link.csv'), 'snapshot', 'contacts.source'],
    [snapshot('hard.csv'), 'snapshot', 'contacts.source'],
    [snapshot('here/crm.db', sqlite), 'snapshot', 'contacts.source'],
    [snapshot('t/acme.sqlite'), 'snapshot', 'templates.source'],
    [file('memoryKeyFile: people.csv'), 'memoryKeyFile', 'contacts.source'],
    [file('memoryKeyFile: acme.sqlite-memory'), 'memoryKeyFile', 'snapshot'],
    [file('memoryKeyFile: key # apiKeyFile'), 'memoryKeyFile', 'platform.apiKeyFile'],
    [file(returns('mirror.yaml')), 'contacts.returns.path', 'the configuration'],
    [file(returns('here/mirror.yaml')), 'contacts.returns.path', 'the configuration'],
    [file(returns('t/welcome.yaml')), 'contacts.returns.path', 'templates.source'],
    ...['', '-wal', '-shm', '-journal', '-lease', '-health', '-memory', '-memory-key'].map(
      (end): [string, string, string] => [
        file(returns(`here/acme.sqlite${end}`)),
        'contacts.returns.path',
        'snapshot',
      ],
    ),
    [file(`${returns('b')}\nmemoryKeyFile: b`), 'contacts.returns.path', 'memoryKeyFile'],
  ])('is refused: %s', (content, option, other) => {
    const lines = found(content)?.map((line) => line.replace(/^mirror.yaml:\d+:\d+ {2}/, ''));
    expect(lines).toEqual([`${option}  is a file of ${other}, too  → name another one`]);
  });

  it('is found by its path on a file system without file numbers', () => {
    const { statSync } = fs;
    const numberless = (...asked: Parameters<typeof statSync>) => {
      const stats = statSync(...asked);
      return stats && Object.assign(stats, { ino: 0n });
    };
    const spy = vi.spyOn(fs, 'statSync').mockImplementation(numberless);
    onTestFinished(() => {
      spy.mockRestore();
      syncBuiltinESMExports();
    });
    syncBuiltinESMExports();
    expect(found(snapshot('acme.sqlite'))).toBeUndefined();
    expect(found(snapshot('link.csv'))?.join()).toContain('is a file of contacts.source, too');
  });

  it('may be one that is only read, or that reports are written to by statements', () => {
    const statement = "update people set news = 'no' where i = :id";
    const back = `  returns: { type: sql, url: sqlite:./crm.db, statement: "${statement}" }`;
    expect(load(file(back, sqlite)).contacts?.returns).toMatchObject({ type: 'sql' });
    expect(load(file(returns('acme.sqlite-returns'))).contacts?.returns).toBeDefined();
  });
});
