/** The files of a memory: made, taken over, refused, given up; and the list in it. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { generateKeyPairSync } from 'node:crypto';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Busy, Invalid } from '../../../src/domain/errors.ts';
import type { RememberedOptOut } from '../../../src/domain/do-not-contact.ts';
import {
  type KnownMemory,
  type Memory,
  openMemory,
  readMemory,
  refuseLost,
} from '../../../src/store/memory/memory.ts';
import { playsAll } from '../../support/extent.ts';
import { scratchFolder } from '../../support/waiting.ts';

const ann = { key: 'ann@example.com', ids: ['crm-1'] };
const bob = { key: 'bob@example.com', ids: ['crm-2'] };
const left: RememberedOptOut = {
  part: '*',
  cause: 'blocked',
  contact: 'con_1',
  after: null,
  by: 5,
};

/** An open memory as the do-not-contact list in it, and what else the tests need of it. */
const listOf = (memory: Memory) => ({ ...memory.list(), memory, close: memory.close });

const knownOf = ({ id, reached }: ReturnType<typeof listOf>): KnownMemory => ({
  id,
  reached: reached(),
});

function writeKey(file: string): void {
  const { privateKey } = generateKeyPairSync('ed25519');
  writeFileSync(file, privateKey.export({ type: 'pkcs8', format: 'pem' }));
}

function place() {
  const folder = scratchFolder();
  const files = { path: join(folder, 'a.sqlite-memory'), keyFile: join(folder, 'a.key') };
  let drawn = 0;
  const open = (known?: KnownMemory, acceptLost = false) => {
    const randomHex = (bytes: number) => `${(drawn += 1)}`.padStart(bytes * 2, '0');
    const memory = openMemory(files, { known, acceptLost, randomHex });
    onTestFinished(memory.close);
    return listOf(memory);
  };
  /** One that knows of Ann; what its snapshot knows of it. */
  const begun = (): KnownMemory => {
    const ledger = open();
    ledger.write([{ ...ann, adds: [left], ends: [] }], 7);
    const known = knownOf(ledger);
    ledger.close();
    return known;
  };
  return { folder, ...files, files, open, begun };
}

describe('the memory', () => {
  test('is created at first use, readable by the owner alone, and found again', () => {
    const { path, keyFile, open, begun } = place();
    const known = begun();
    for (const file of [path, keyFile]) expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(keyFile, 'utf8')).toMatch(/^-----BEGIN PRIVATE KEY-----\n/);
    const ledger = open(known);
    expect(knownOf(ledger)).toEqual(known);
    expect(ledger.concerning(ann)).toMatchObject([{ ...left, through: 'address', bears: true }]);
  });

  test('is created with an existing key', () => {
    const { path, keyFile, open } = place();
    writeKey(keyFile);
    const key = readFileSync(keyFile, 'utf8');
    open().close();
    expect(readFileSync(keyFile, 'utf8')).toBe(key);
    // Nothing in it shows that it was used before.
    rmSync(path);
    open().close();
  });

  test('leaves no key behind if it cannot be created', () => {
    const { folder, files } = place();
    const randomHex = () => {
      throw new Error('full');
    };
    const opening = { known: undefined, acceptLost: false, randomHex };
    expect(() => openMemory(files, opening)).toThrow('full');
    expect(readdirSync(folder)).toEqual([]);
  });

  test('is created again after an interruption', () => {
    const { folder, path, open } = place();
    writeFileSync(`${path}.part`, 'x');
    expect(open().concerning(ann)).toEqual([]);
    expect(readdirSync(folder).filter((one) => one.endsWith('.part'))).toEqual([]);
  });

  test('is not created by reading alone', () => {
    const { folder, files } = place();
    expect(readMemory(files)).toBeUndefined();
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe('the content of the list', () => {
  test('finds people by address and by id; a bounce by address alone', () => {
    const { open } = place();
    const ledger = open();
    ledger.write([{ ...ann, adds: [left, { ...left, cause: 'bounce' }], ends: [] }], 7);
    const causes = (key: string, ids: string[]) =>
      ledger.concerning({ key, ids }).map(({ cause, through }) => `${cause} ${through}`);
    expect(causes(ann.key, ['crm-2'])).toEqual(['blocked address', 'bounce address']);
    expect(causes('new@example.com', ann.ids)).toEqual(['blocked id']);
    expect(causes('new@example.com', [ann.key])).toEqual([]);
    const both = { ...ann, ids: [...ann.ids, 'crm-2'] };
    expect(ledger.concerning(both).map(({ bears }) => bears)).toEqual([false, true]);
  });

  test('ignores repeated entries, and does not report ended ones', () => {
    const { path, open } = place();
    const ledger = open();
    for (const at of [1, 2]) ledger.write([{ ...ann, adds: [left], ends: [] }], at);
    const [entry, ...more] = ledger.concerning(ann);
    expect(more).toEqual([]);
    ledger.write([{ ...ann, adds: [], ends: [{ seq: entry?.seq ?? 0, why: 'allow: asked' }] }], 9);
    expect(ledger.concerning(ann)).toEqual([]);
    const rows = new Database(path, { readonly: true }).prepare(
      'select ended_at, ended from do_not_contact',
    );
    expect(rows.all()).toEqual([{ ended_at: 9, ended: 'allow: asked' }]);
  });

  test('holds no reason or note about an erased person, even while it is open', () => {
    const { folder, open } = place();
    const ledger = open();
    const operator = { ...left, cause: 'operator', part: 'ch_1', note: 'a secret note' } as const;
    const erasure = { ...left, cause: 'erasure', contact: null } as const;
    const bytes = () =>
      readdirSync(folder)
        .map((name) => readFileSync(join(folder, name), 'latin1'))
        .join('');
    ledger.write([{ ...ann, adds: [operator], ends: [] }], 7);
    const [{ seq } = { seq: 0 }] = ledger.concerning(ann);
    ledger.write([{ ...ann, adds: [], ends: [{ seq, why: 'a secret reason' }] }], 8);
    ledger.write([{ ...ann, adds: [operator], ends: [] }], 9);
    expect(bytes()).toMatch(/a secret note[^]*a secret reason|a secret reason[^]*a secret note/);
    ledger.write([{ ...ann, adds: [erasure], ends: [] }], 10);
    ledger.memory.forget({ key: ann.key, contacts: [] }, { at: 11, by: 'eva' });
    expect(bytes()).not.toMatch(/secret/);
    expect(ledger.concerning(ann).map(({ cause }) => cause)).toEqual(['operator', 'erasure']);
  });

  test('keeps the note of an entry that no longer belongs to an id', () => {
    const ledger = place().open();
    const note = 'who decided';
    const both = { ...ann, ids: [...ann.ids, ...bob.ids] };
    ledger.write([{ ...both, adds: [{ ...left, cause: 'operator', note }], ends: [] }], 7);
    const frees = ledger.concerning(bob).map(({ seq }) => seq);
    ledger.write([{ ...bob, adds: [], ends: [], frees }], 8);
    expect(ledger.concerning(bob)).toEqual([]);
    expect(ledger.concerning(ann)).toMatchObject([{ cause: 'operator', note }]);
  });

  test('holds no address and no id in plain', () => {
    const { folder, begun } = place();
    begun();
    const bytes = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'latin1'));
    expect(bytes.join('')).not.toMatch(/ann@example|crm-1/);
  });
});

describe('a memory that is refused until it is restored or given up', () => {
  type Place = ReturnType<typeof place>;
  const other = ({ path, keyFile }: Place, what: 'path' | 'keyFile') => {
    const strange = place();
    if (what === 'path') copyFileSync(keyFile, strange.keyFile);
    else writeKey(strange.keyFile);
    // Another of the same key would have the same id, were it the first that is drawn.
    openMemory(strange.files, {
      known: undefined,
      acceptLost: false,
      randomHex: () => 'fe'.repeat(8),
    }).close();
    copyFileSync(strange[what], { path, keyFile }[what]);
  };
  const losses: [string, (files: Place) => void, RegExp][] = [
    ['the memory is gone', ({ path }) => rmSync(path), /memory of this snapshot is missing/],
    ['its key is gone', ({ keyFile }) => rmSync(keyFile), /key of the memory is missing/],
    ['another memory', (files) => other(files, 'path'), /another memory than the one/],
    ['another key', (files) => other(files, 'keyFile'), /not the key of the memory/],
    ['no key at all', ({ keyFile }) => writeFileSync(keyFile, 'x'), /no key of a memory/],
    ['an empty key', ({ keyFile }) => writeFileSync(keyFile, ''), /no key of a memory/],
    [
      'a key cut in two',
      ({ keyFile }) => writeFileSync(keyFile, readFileSync(keyFile, 'utf8').slice(0, 60)),
      /no key of a memory/,
    ],
    [
      'another database',
      ({ path }) => {
        rmSync(path);
        new Database(path).exec('create table other (x)').close();
      },
      /not a readable database/,
    ],
    ['rubbish', ({ path }) => writeFileSync(path, 'x'.repeat(999)), /not a readable database/],
    ['an emptied file', ({ path }) => writeFileSync(path, ''), /not a readable database/],
    [
      'a count that is no number',
      ({ path }) =>
        new Database(path).exec("update meta set value = 'x' where name = 'reached'").close(),
      /older than its snapshot/,
    ],
  ];

  test.each(losses)('%s', (name, lose, says) => {
    const files = place();
    const known = files.begun();
    lose(files);
    const before = readdirSync(files.folder).toSorted();
    expect(() => files.open(known)).toThrow(Invalid);
    expect(() => files.open(known)).toThrow(says);
    expect(() => files.open(known)).toThrow('--accept-lost-ledger');
    expect(() => readMemory(files.files, known)).toThrow(says);
    expect(readdirSync(files.folder).filter((one) => !/-(wal|shm)$/.test(one))).toEqual(before);
    const fresh = files.open(known, true);
    expect(fresh.concerning(ann)).toHaveLength(name === 'a count that is no number' ? 1 : 0);
    expect(fresh.id).not.toBe(known.id);
    const knownNow = knownOf(fresh);
    fresh.close();
    expect(files.open(knownNow).id).toBe(fresh.id);
    // What could not be used is kept; a sound one is no loss, and taken over.
    const isKept = readdirSync(files.folder).some((one) => one.includes('-lost-1'));
    const isUsed = ['another memory', 'a count that is no number'].includes(name);
    expect(isKept).toBe(!isUsed && name !== 'the memory is gone');
  });

  test.each(['path', 'keyFile'] as const)('nothing shows that %s was its file', (which) => {
    const { open, ...files } = place();
    writeFileSync(files[which], 'my notes');
    for (const acceptLost of [false, true])
      expect(() => open(undefined, acceptLost)).toThrow(Invalid);
    expect(() => open(undefined, true)).toThrow(/nothing shows.*→ move it away/);
    expect(readdirSync(files.folder)).toHaveLength(1);
    expect(readFileSync(files[which], 'utf8')).toBe('my notes');
  });

  test('its own key is there, and neither the memory nor a snapshot', () => {
    const { folder, files, path, keyFile, open, begun } = place();
    begun();
    const gone = () => {
      for (const end of ['', '-wal', '-shm']) rmSync(`${path}${end}`, { force: true });
    };
    gone();
    for (const work of [open, () => refuseLost(files)]) {
      expect(work).toThrow(Invalid);
      expect(work).toThrow(/memory is missing that .*a\.key was made for.*--accept-lost-ledger/);
    }
    expect(readdirSync(folder)).toEqual(['a.key']);
    // A key that another mirror shares, or that was interrupted before the memory, proves nothing.
    const other = { path: `${path}-2`, keyFile };
    const randomHex = () => 'a1'.repeat(8);
    openMemory(other, { known: undefined, acceptLost: false, randomHex }).close();
    writeFileSync(`${path}.part`, '');
    open().close();
    gone();
    open(undefined, true).close();
    expect(readdirSync(folder).filter((name) => name.includes('lost'))).toEqual([]);
  });

  test('not while the first memory is made: its key is read before its file is looked for', async () => {
    const { files, path, keyFile } = place();
    writeKey(`${keyFile}-made`);
    appendFileSync(`${keyFile}-made`, `# Made by crm-mirror for ${path}\n`);
    execFileSync('mkfifo', [keyFile]);
    // The pipe opens once the key is read, and the memory is there before the key arrives.
    const script = 'exec 3> "$1"; : > "$0"; cat "$1-made" >&3';
    const maker = spawn('sh', ['-c', script, path, keyFile]);
    const ended = once(maker, 'exit');
    refuseLost(files);
    expect(await ended).toEqual([0, null]);
    expect(existsSync(path)).toBe(true);
  });

  test('an older memory, put back, is refused, or continues under another id once accepted', () => {
    const { path, files, open, begun } = place();
    const older = begun();
    const night = readFileSync(path);
    const ledger = open(older);
    const [entry] = ledger.concerning(ann);
    ledger.write([{ ...bob, adds: [left], ends: [] }], 8);
    ledger.write([{ ...ann, adds: [], ends: [{ seq: entry?.seq ?? 0, why: 'allow: asked' }] }], 9);
    const known = knownOf(ledger);
    ledger.close();
    const newest = readFileSync(path);
    writeFileSync(path, night);
    const says = /older than its snapshot.*3 writes.*1; .*→ put the newest.*--accept-lost-ledger/;
    expect(() => open(known)).toThrow(Invalid);
    expect(() => open(known)).toThrow(says);
    expect(() => readMemory(files, known)).toThrow(says);
    const accepted = open(known, true);
    expect(accepted.concerning(ann)).toHaveLength(1);
    expect(accepted.id).not.toBe(known.id);
    const knownNow = knownOf(accepted);
    accepted.close();
    expect(open(knownNow).concerning(ann)).toHaveLength(1);
    // The one it stands in for lacks what this one learns from now on.
    writeFileSync(path, newest);
    expect(() => open(knownNow)).toThrow(/another memory than the one/);
  });

  test('a memory ahead of the snapshot, or one of which the snapshot knows less, is accepted', () => {
    const { open, begun } = place();
    const known = begun();
    expect(open({ ...known, reached: 0 }).concerning(ann)).toHaveLength(1);
  });

  test.each(['path', 'keyFile'] as const)('a folder in the place of the %s is refused', (what) => {
    const files = place();
    mkdirSync(files[what]);
    const says = `${files[what]}: this is a folder`;
    expect(() => files.open()).toThrow(Invalid);
    expect(() => files.open(undefined, true)).toThrow(says);
    expect(() => readMemory(files.files)).toThrow(says);
  });

  test('a valid memory beside a snapshot that knows of none is taken over', () => {
    const { open, begun } = place();
    const { id } = begun();
    expect(open().id).toBe(id);
    expect(open().concerning(ann)).toHaveLength(1);
  });

  test('accepting a loss that did not happen loses nothing', () => {
    const { open, begun } = place();
    expect(open(begun(), true).concerning(ann)).toHaveLength(1);
  });
});

test.runIf(playsAll)(
  'a memory that another process has locked fails as busy, and works again afterwards',
  () => {
    const { path, open, begun } = place();
    const ledger = open(begun());
    const rival = new Database(path);
    onTestFinished(() => void rival.close());
    rival.exec('begin immediate');
    expect(() => ledger.write([{ ...ann, adds: [left], ends: [] }], 7)).toThrow(Busy);
    rival.exec('rollback');
    ledger.write([{ ...ann, adds: [left], ends: [] }], 7);
    expect(existsSync(path)).toBe(true);
  },
);
