/** Opens a workbook: finds the sheet and reads the parts to which its cells refer. */
import { posix } from 'node:path';
import { Invalid } from '../../domain/errors.ts';
import { hintsFor, listed, quoted } from '../shared/field-suggestions.ts';
import type { CellContext } from './cell-value.ts';
import { formatReader } from './number-formats.ts';
import { type RowReader, rowReader } from './sheet-rows.ts';
import { stringReader } from './shared-strings.ts';
import { parseXml, XmlFault, type XmlReader } from './xml-stream.ts';
import { damaged, notWorkbook, openParts, type Parts, type ZipPlace } from './zip-parts.ts';

/** The sheet of an opened workbook. */
export interface Sheet {
  /** The name for messages: the file and the sheet. */
  name: string;
  rows: RowReader;
  /** Reads the sheet into `rows`. Yields the bytes of each chunk. Throws Invalid. */
  read(): AsyncGenerator<number>;
}

/** Opens the sheet with this name, or the first sheet that is not hidden. Throws Invalid. */
export async function openSheet(place: ZipPlace, name: string | undefined): Promise<Sheet> {
  const parts = await openParts(place);
  const book: Book = { place, parts };
  const part = await workbookPart(book);
  const found = workbookReader();
  await readPart(book, part, found);
  const relations = await relationsOf(book, part);
  const sheets = found.sheets.filter(({ id }) => isOf(relations.get(id), 'worksheet'));
  const sheet = chosen(sheets, { path: place.path, name });
  const sheetPart = relations.get(sheet.id)?.part ?? '';
  const context = await contextOf(book, relations, found.settings());
  const rows = rowReader(context);
  return {
    name: `${place.path}: sheet ${quoted(sheet.name)}`,
    rows,
    read: () => parsedPart(book, sheetPart, rows),
  };
}

interface Book {
  place: ZipPlace;
  parts: Parts;
}

async function contextOf(
  book: Book,
  relations: Relations,
  settings: Settings,
): Promise<CellContext> {
  const all = [...relations.values()];
  const [strings, formats] = [stringReader(), formatReader()];
  const stringPart = all.find((one) => isOf(one, 'sharedStrings'));
  if (stringPart) await readPart(book, stringPart.part, strings);
  const stylePart = all.find((one) => isOf(one, 'styles'));
  if (stylePart) await readPart(book, stylePart.part, formats);
  return { strings: strings.strings, kinds: formats.kinds(), ...settings };
}

async function readPart(book: Book, part: string, reader: XmlReader): Promise<void> {
  for await (const _ of parsedPart(book, part, reader));
}

async function* parsedPart(
  { place, parts }: Book,
  part: string,
  reader: XmlReader,
): AsyncGenerator<number> {
  try {
    yield* parseXml(parts.chunks(part), reader);
  } catch (error) {
    if (!(error instanceof XmlFault)) throw error;
    throw damaged(place.path, `${quoted(part)} ${error.message}`);
  }
}

/** The namespace of references, in the transitional and in the strict form of the format. */
const references = [
  'http://schemas.openxmlformats.org/officeDocument/2006/relationships',
  'http://purl.oclc.org/ooxml/officeDocument/relationships',
];

/** A reference from one part to another. */
interface Relation {
  /** The namespace of references, and the type of the part. */
  type: string;
  part: string;
}

type Relations = ReadonlyMap<string, Relation>;

function isOf(relation: Relation | undefined, type: string): boolean {
  return references.some((uri) => relation?.type === `${uri}/${type}`);
}

/** Reads the references of a part, or of the whole package if the part is ''. */
async function relationsOf(book: Book, part: string): Promise<Relations> {
  const relations = new Map<string, Relation>();
  const { dir, base } = posix.parse(part);
  const name = posix.join(dir, '_rels', `${base}.rels`);
  if (!book.parts.has(name)) return relations;
  await readPart(book, name, {
    opened(element, { Id = '', Type = '', Target = '', TargetMode }) {
      if (element !== 'Relationship' || TargetMode === 'External') return;
      const target = posix.resolve(`/${dir}`, Target);
      relations.set(Id, { type: Type, part: target.slice(1) });
    },
    closed: () => false,
  });
  return relations;
}

async function workbookPart(book: Book): Promise<string> {
  const { path } = book.place;
  const relations = await relationsOf(book, '');
  const main = [...relations.values()].find((one) => isOf(one, 'officeDocument'))?.part;
  if (main === undefined) throw notWorkbook(path);
  if (main.endsWith('.bin')) throw notWorkbook(path, 'this is a binary workbook (.xlsb)');
  return main;
}

interface NamedSheet {
  name: string;
  id: string;
  isHidden: boolean;
}

type Settings = Pick<CellContext, 'since1904' | 'isStale'>;

function workbookReader(): XmlReader & { sheets: NamedSheet[]; settings(): Settings } {
  const sheets: NamedSheet[] = [];
  let [since1904, isStale] = [false, false];
  return {
    sheets,
    settings: () => ({ since1904, isStale }),
    opened(element, attributes) {
      const { name = '', state = 'visible', date1904, fullCalcOnLoad } = attributes;
      if (element === 'workbookPr') since1904 = isTrue(date1904);
      // Programs that do not compute formulas set this attribute, and some store 0 as the result.
      if (element === 'calcPr') isStale = isTrue(fullCalcOnLoad);
      if (element !== 'sheet') return;
      const [id = ''] = references.flatMap((uri) => attributes[`${uri} id`] ?? []);
      sheets.push({ name, id, isHidden: state !== 'visible' });
    },
    closed: () => false,
  };
}

function isTrue(value: string | undefined): boolean {
  return value === '1' || value === 'true';
}

function chosen(
  sheets: readonly NamedSheet[],
  { path, name }: { path: string; name: string | undefined },
): NamedSheet {
  const [first] = sheets;
  if (!first) throw notWorkbook(path, 'this is not a workbook with a sheet');
  if (name === undefined) return sheets.find(({ isHidden }) => !isHidden) ?? first;
  const found = sheets.find((one) => one.name === name);
  if (found) return found;
  const names = sheets.map((one) => one.name);
  const reason = [`there is no sheet ${quoted(name)}`, `sheets found: ${listed(names)}`];
  const fix = [...hintsFor([name], names), 'correct sheet in the source'].join('; ');
  throw new Invalid(`${path}: ${reason.join('; ')}`, { fix });
}
