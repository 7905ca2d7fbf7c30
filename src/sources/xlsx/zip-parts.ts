/** Reads the parts of a workbook, which is a zip of XML files. Each part is read as a stream. */
import type { FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { type Entry, fromFdPromise, type ZipFile } from 'yauzl';
import { Invalid } from '../../domain/errors.ts';
import { quoted } from '../shared/field-suggestions.ts';
import { unreadable } from '../shared/files/local-file.ts';

/** A limit far above the number of sheets, pictures and charts in a workbook. */
const MOST_PARTS = 20_000;

/** An opened zip. */
export interface Parts {
  /** Returns whether there is a part with this name. Case is ignored. */
  has(name: string): boolean;
  /**
   * Yields the bytes of a part. Throws Invalid if there is no such part, or if its length or CRC is
   * not the one that the zip states.
   */
  chunks(name: string): AsyncGenerator<Buffer>;
}

/** The file that holds the zip. */
export interface ZipPlace {
  /** The name for messages. */
  path: string;
  handle: FileHandle;
  signal: AbortSignal;
}

/** Opens the zip and reads its directory. Throws Invalid if the file is not a workbook. */
export async function openParts(place: ZipPlace): Promise<Parts> {
  const { path, handle, signal } = place;
  await assertZip(place);
  const entries = new Map<string, Entry>();
  const zip = await reading(place, async () => {
    const opened = await fromFdPromise(handle.fd, { autoClose: false, lazyEntries: true });
    for await (const entry of opened.eachEntry()) {
      signal.throwIfAborted();
      if (entries.size === MOST_PARTS) throw new Error('too many parts');
      entries.set(entry.fileName.toLowerCase(), entry);
    }
    return opened;
  });
  return {
    has: (name) => entries.has(name.toLowerCase()),
    chunks(name) {
      const entry = entries.get(name.toLowerCase());
      if (!entry) throw damaged(path, `it has no ${quoted(name)}`);
      if (entry.isEncrypted()) throw locked(path);
      return chunksOf(zip, entry, place);
    },
  };
}

/** Returns the error for a damaged workbook. */
export function damaged(path: string, how: string): Invalid {
  const fix = 'open it in a spreadsheet program and save it again as .xlsx';
  return new Invalid(`${path}: the workbook is damaged: ${how}`, { fix });
}

/** Returns the error for a file that is not a workbook. */
export function notWorkbook(path: string, what = 'this is not an Excel workbook'): Invalid {
  return new Invalid(`${path}: ${what}`, { fix: 'save it as an Excel workbook (.xlsx)' });
}

function locked(path: string): Invalid {
  return new Invalid(`${path}: this is an old .xls workbook or has a password`, {
    fix: 'save it as .xlsx without a password',
  });
}

/** The first bytes of an .xls file, and of an .xlsx file with a password. */
const OLD = Buffer.from('d0cf11e0a1b11ae1', 'hex');

async function assertZip({ path, handle }: ZipPlace): Promise<void> {
  const head = Buffer.alloc(OLD.length);
  const { bytesRead } = await handle.read(head, 0, head.length, 0).catch((error: unknown) => {
    throw unreadable(path, error);
  });
  if (bytesRead === 0) throw notWorkbook(path, 'the file is empty');
  if (head.equals(OLD)) throw locked(path);
  if (head.toString('latin1', 0, 2) !== 'PK') throw notWorkbook(path);
}

async function* chunksOf(zip: ZipFile, entry: Entry, place: ZipPlace): AsyncGenerator<Buffer> {
  const { path, signal } = place;
  const stream = await reading(place, async () => zip.openReadStreamPromise(entry));
  const chunks: AsyncIterator<Buffer> = stream[Symbol.asyncIterator]();
  let sum = 0;
  try {
    for (;;) {
      const next = await reading(place, async () => chunks.next());
      signal.throwIfAborted();
      if (next.done) break;
      sum = crc32(next.value, sum);
      yield next.value;
    }
  } finally {
    stream.destroy();
  }
  if (sum === entry.crc32) return;
  throw damaged(path, `${quoted(entry.fileName)} is not what was stored`);
}

/** Returns the result of `read`. Errors other than those of the file system mean damage. */
async function reading<T>({ path, signal }: ZipPlace, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof Error && 'syscall' in error) throw unreadable(path, error);
    throw damaged(path, 'it is cut off, or a part of it cannot be unpacked');
  }
}
